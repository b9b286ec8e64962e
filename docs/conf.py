"""Settings of Sphinx. `generate` writes the computed pages before Sphinx looks for pages."""

import re
import sys
from pathlib import Path

DOCS = Path(__file__).parent
ROOT = DOCS.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests"), str(DOCS)]

import supremum  # noqa: E402
from generate.coverage import missing_names  # noqa: E402
from generate.docstrings import literal  # noqa: E402
from generate.exploring import explorer_files  # noqa: E402
from generate.readme import closed, relinked  # noqa: E402
from generate.site import site_files, write_site  # noqa: E402
from generate.stacked_tables import StackedTables, breakable, with_whole_options  # noqa: E402

project = "Supremum"
author = "Supremum's contributors"
copyright = "Supremum's contributors; Apache 2.0"  # noqa: A001
release = version = supremum.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
exclude_patterns = ["generate/**", "static/**", "generated/static/**", "generated/parts/**"]
html_theme = "furo"
html_title = "Supremum"
html_favicon = "../src/supremum/render/icon.svg"
html_static_path = ["static", "generated/static", "../src/supremum/render/sideways.js"]
html_css_files = ["site.css", "kinds.css"]
html_js_files = [("sideways.js", {"defer": "defer"})]
html_show_sourcelink = False
html_show_sphinx = False
html_theme_options = {"navigation_with_keys": True}

nitpicky = True
# The build works offline, so Sphinx has no inventories of Python and other libraries.
nitpick_ignore_regex = [
    ("py:.*", rf"{package}\..*")
    for package in (
        "collections",
        "contextlib",
        "contextvars",
        "jax",
        "numpy",
        "optax",
        "os",
        "pathlib",
        "types",
        "typing",
    )
]
# Types in signatures that are not public: keyword arguments that classes share, type variables, and aliases of Any.
_UNNAMED = (
    "AbstractValue",
    "ActivationFunction",
    "Allowed",
    "ArrayCasts",
    "Axes",
    "Columns",
    "ConstraintFunction",
    "Forbidding",
    "Hyper",
    "Initializer",
    "InputSpecs",
    "Ints",
    "LayerNode",
    "MeanState",
    "Operands",
    "OptaxOptimizer",
    "OptimizerLike",
    "Output",
    "P",
    "Padding",
    "Part",
    "PolicyLike",
    "RegularizerFunction",
    "RulesLike",
    "SampleWeight",
    "Transformer",
    "TypeNames",
    "Variables",
    "lax.PrecisionLike",
    "np.random.Generator",
    "supremum.arrays.backends.base.Backend",
    "supremum.arrays.backends.base.Key",
    "supremum.arrays.backends.base.CallPlan",
    "supremum.arrays.indexed_updates.At",
    "supremum.arrays.namespaces.Namespace",
    "supremum.bounded_cache.K",
    "supremum.bounded_cache.V",
    "supremum.jaxprs.equations._Demand",
    "supremum.jaxprs.plans.Step",
    "supremum.jaxprs.positions.Position",
    "supremum.mixed_precision.autocasting.settings.Settings",
    "supremum.mixed_precision.autocasting.transform.R",
    "supremum.mixed_precision.weight_storage.weights.Key",
    "supremum.nn.layer.LayerOptions",
    "supremum.nn.layers.convolution.ConvOptions",
    "supremum.nn.layers.normalization.NormOptions",
    "supremum.nn.layers.pooling.PoolOptions",
    "supremum.nn.layers.products.KernelOptions",
    "supremum.nn.module_tree.M",
    "supremum.nn.module_tree.Module",
    "supremum.nn.summary.SummaryRow",
    "supremum.nn.symbolic.LayerNode",
    "supremum.nn.variables.Shard",
    "supremum.numerics.attributing.ErrorShares",
    "supremum.numerics.diagnosis.Diagnosis",
    "supremum.numerics.emulation.R",
    "supremum.numerics.nonfinite_origins.OriginOutcomes",
    "supremum.numerics.nonfinite_origins.OriginRecords",
    "supremum.numerics.nonfinite_origins.SourceSlot",
    "supremum.numerics.packed_tallies.PackedTallies",
    "supremum.numerics.tallied_results.Slot",
    "supremum.numerics.tallies.Tally",
    "supremum.numerics.watching.Measured",
    "supremum.numerics.watching.P",
    "supremum.numerics.watching.R",
    "supremum.optimizers.algorithms.GradientDescentOptions",
    "supremum.optimizers.hyperparameters.Rule",
    "supremum.optimizers.state.Scalar",
    "supremum.render.side_by_side.SideBySide",
    "supremum.reports.page.R",
    "supremum.reports.rows.Row",
    "supremum.rules.shared_cache.Memory",
    "supremum.training.data.batches.Rows",
    "supremum.training.data.batches.Selection",
    "supremum.training.losses.loss.LossOptions",
    "supremum.training.metrics.metric.MeanState",
    "supremum.training.model.EvaluateOptions",
    "supremum.training.trainer.Trainer",
)
nitpick_ignore = [("py:class", name) for name in _UNNAMED] + [("py:class", "supremum.tracing.forbid.Forbidding")]
autodoc_default_options = {"members": True}
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
napoleon_numpy_docstring = False
napoleon_use_ivar = True
napoleon_attr_annotations = False
myst_heading_anchors = 3
# The copy button leaves out prompts and output.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True


def _generate(_app, _config):
    write_site(site_files(ROOT) | explorer_files(), DOCS / "generated")


def _relink(_app, docname, source):
    if not docname.startswith("generated/"):
        source[0] = relinked(closed(source[0]), "docs", docname)


def _read(_app, _what, _name, _obj, _options, lines):
    lines[:] = literal("\n".join(lines)).split("\n")


def _shorten_signature(_app, _what, _name, _obj, _options, signature, returned):
    # Python shows `<function zeros at 0x7f...>`, with an address that changes from build to build. Sphinx cannot parse
    # other defaults such as `<factory>`, and would show autodoc's tildes in front of types and type variables.
    def shorten(text):
        named = re.sub(r"<(?:PjitFunction of <)?function ([\w.]+)[^>]*>{1,2}", r"\1", text)
        return re.sub(r"~(?=\w+\b(?!\.))", "", re.sub(r"= ?<(?:[^<>]|<[^<>]*>)*>", "= ...", named))

    return signature and shorten(signature), returned


def _skip(_app, _what, _name, member, skipped, _options):
    # Skip the fields of named tuples: Python generates their docstrings, and that of the class describes them.
    return skipped or str(getattr(member, "__doc__", "")).startswith("Alias for field number")


def _break_lines(_app, _pagename, _template, context, _doctree):
    context["body"] = with_whole_options(breakable(context.get("body", "")))


def _keep_titles(_app, env):
    """Store the contents of each page without the entries below its title; nested trees stay."""
    from sphinx.addnodes import toctree

    env.titles_only = {name: contents.deepcopy() for name, contents in env.tocs.items()}
    for contents in env.titles_only.values():
        for entry in contents:
            if len(entry) > 1:
                entry[1][:] = list(entry[1].findall(toctree))


def _navigate_by_titles(app, _pagename, _template, context, _doctree):
    # The navigation shows titles only. For each page, Sphinx copies the entries of all pages, thousands in the
    # reference, before it drops them.
    navigate = context.get("toctree")

    def by_titles(**options):
        env = app.builder.env
        env.tocs, whole = env.titles_only if options.get("titles_only") else env.tocs, env.tocs
        try:
            return navigate(**options)
        finally:
            env.tocs = whole

    if navigate is not None:
        context["toctree"] = by_titles


def _require_every_name(_app, env):
    from sphinx.util.logging import getLogger

    for name in missing_names(env.domaindata["py"]["objects"]):
        getLogger("supremum.docs").warning("public name without a page: %s", name)


def setup(app):
    """Connect the generator and the check of public names to the build."""
    app.connect("config-inited", _generate)  # before Sphinx looks for its folders
    app.connect("source-read", _relink)
    app.connect("autodoc-skip-member", _skip)
    app.connect("autodoc-process-signature", _shorten_signature)
    app.connect("autodoc-process-docstring", _read, priority=400)  # before napoleon makes sections
    app.connect("env-check-consistency", _require_every_name)
    app.connect("env-check-consistency", _keep_titles)
    app.connect("html-page-context", _navigate_by_titles, priority=400)  # before the theme makes its navigation
    app.connect("html-page-context", _break_lines)
    app.add_post_transform(StackedTables)
