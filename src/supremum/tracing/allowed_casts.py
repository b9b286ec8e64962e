"""Selection of the casts that `forbid_casts` forbids and allows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatch
from typing import Any, TypeAlias

from supremum.argument_checks import chosen, iterable, text
from supremum.errors import UnknownNameError
from supremum.rules import RuleSet, get_rules, rule_names
from supremum.tracing.cast import Cast
from supremum.tracing.classify import CLASSES

Allowed: TypeAlias = "str | RuleSet"
"""A rule set or its name, a class of casts, or a pattern of file names."""


@dataclass(frozen=True, slots=True)
class Forbidden:
    """The casts that are forbidden; `cast in forbidden` tests one.

    Args:
        kinds: the forbidden classes.
        rules: rule sets; a promotion is allowed if one of them makes the same one.
        files: shell patterns; casts in matching files are allowed.
    """

    kinds: frozenset[str]
    rules: tuple[RuleSet, ...] = ()
    files: tuple[str, ...] = ()

    @classmethod
    def of(cls, kinds: Iterable[str], allow: Allowed | Iterable[Allowed]) -> Forbidden:
        """Parse the arguments of `forbid_casts`.

        Args:
            kinds: classes, or `"all"`.
            allow: exceptions: rule sets, classes, and file name patterns, which contain a dot, a slash or a star.

        Raises:
            UnknownNameError: for any other name.

        >>> sorted(Forbidden.of(["all"], ["explicit", "*/layers/*.py"]).kinds)
        ['autocast', 'library', 'promotion', 'unknown']
        """
        wanted = set[str]()
        for kind in kinds:
            chosen("class of casts", kind, (*CLASSES, "all"))
            wanted |= set(CLASSES) if kind == "all" else {kind}
        rules: list[RuleSet] = []
        files: list[str] = []
        allowed: Any = (allow,) if isinstance(allow, (str, RuleSet)) else allow
        for each in iterable("allow", allowed, "classes of casts, rule sets and file patterns"):
            if isinstance(each, RuleSet) or text("what is allowed", each) in rule_names():
                rules.append(get_rules(each))
            elif each in CLASSES:
                wanted.discard(each)
            elif any(mark in each for mark in "./*\\"):
                files.append(each)
            else:
                raise UnknownNameError("class, rule set or file pattern", each, (*CLASSES, *rule_names()))
        return cls(frozenset(wanted), tuple(rules), tuple(files))

    def __contains__(self, cast: Cast) -> bool:
        if cast.kind not in self.kinds or cast.times == 0:
            return False
        if any(fnmatch(cast.file, pattern) for pattern in self.files):
            return False
        return cast.kind != "promotion" or not any(_makes_promotion(rules, cast) for rules in self.rules)


def _makes_promotion(rules: RuleSet, cast: Cast) -> bool:
    if cast.decision is None:
        return False
    decision = rules.decide(cast.decision.operation, cast.decision.operands)
    return any(each.source == cast.source and each.target == cast.target for each in decision.casts)
