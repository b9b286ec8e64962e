"""Calls functions of SciPy and scikit-learn with bare arrays and with an `Array`, and prints whether they agree.

The argument is the library that holds the arrays.

SciPy reads SCIPY_ARRAY_API at its import, so this runs in its own process.
"""

import importlib
import json
import sys
import warnings

import jax
import jax.numpy as jnp
import numpy as np

from supremum import Array, use_rules

# Calls without spaces; `a` makes an array.
SCIPY = """
special.erf(a(x)) special.logit(a(x)) special.expit(a(x)) special.gammaln(a(x)) special.logsumexp(a(x))
special.softmax(a(x)) special.log_softmax(a(x)) special.xlogy(a(x),a(y)) special.entr(a(x)) special.rel_entr(a(x),a(y))
special.i0(a(x)) special.ndtr(a(x)) special.betainc(a(x),a(x),a(y)) special.gammainc(a(x),a(y)) special.chdtr(a(x),a(y))
special.stdtrit(a(x),a(y)) stats.zscore(a(x)) stats.skew(a(x)) stats.kurtosis(a(x)) stats.gmean(a(x)) stats.hmean(a(x))
stats.pmean(a(x),2) stats.variation(a(x)) stats.sem(a(x)) stats.moment(a(x),3) stats.tmean(a(x))
stats.ttest_1samp(a(x),.5).statistic stats.ttest_ind(a(x),a(y)).statistic stats.pearsonr(a(x),a(y)).statistic
stats.entropy(a(x)) stats.describe(a(x)).variance stats.kstat(a(x)) stats.circmean(a(x))
stats.directional_stats(a(m)).mean_direction stats.chisquare(a(x)).statistic stats.power_divergence(a(x)).statistic
stats.skewtest(a(x)).statistic stats.normaltest(a(np.tile(x,3))).statistic stats.jarque_bera(a(x)).statistic
stats.bartlett(a(x),a(y)).statistic stats.combine_pvalues(a(x)).statistic stats.mannwhitneyu(a(x),a(y)).statistic
stats.trim_mean(a(x),.1) stats.quantile(a(x),.3) stats.iqr(a(x)) stats.rankdata(a(x))
stats.f_oneway(a(x),a(y)).statistic stats.median_abs_deviation(a(x)) stats.boxcox_llf(.5,a(x))
stats.linregress(a(x),a(y)).slope fft.fft(a(x)) fft.rfft(a(x)) fft.dct(a(x)) fft.fftshift(a(x))
fft.irfft(a(x.astype('complex64'))) fft.fht(a(x),.1,1.) signal.convolve(a(x),a(y)) signal.fftconvolve(a(x),a(y))
signal.correlate(a(x),a(y)) signal.detrend(a(x)) signal.hilbert(a(x)) signal.lfilter(a(x[:2]),a(y[:2]),a(x))
signal.savgol_filter(a(x),5,2) signal.welch(a(x),nperseg=4)[1]
signal.sosfilt(a(np.array([[1,0,0,1,0,0]],'float32')),a(x)) signal.resample(a(x),6) linalg.det(a(m)) linalg.inv(a(m))
linalg.solve(a(m),a(m)) linalg.cholesky(a(m)) linalg.norm(a(m)) linalg.eigh(a(m))[0] linalg.svdvals(a(m))
linalg.expm(a(m)) linalg.qr(a(m))[1] integrate.trapezoid(a(y),a(x)) integrate.simpson(a(y),x=a(x))
integrate.cumulative_trapezoid(a(y),a(x)) ndimage.gaussian_filter(a(m),1.) ndimage.uniform_filter(a(m),2)
ndimage.label(a((m>1).astype('int32')))[0] ndimage.rotate(a(m),10) vq.whiten(a(m)) vq.vq(a(m),a(m[:2]))[1]
vq.kmeans(a(m),a(m[:2]))[1] distance.pdist(a(m)) distance.cdist(a(m),a(m)) distance.euclidean(a(x),a(y))
optimize.elementwise.find_root(parabola,(a(np.zeros(2,'float32')),a(np.ones(2,'float32')))).x optimize.rosen(a(x))
differentiate.derivative(parabola,a(x)).df interpolate.barycentric_interpolate(a(x),a(y),a(x[:3]))
interpolate.PchipInterpolator(a(x),a(y))(a(x[:3])) interpolate.CubicSpline(a(x),a(y))(a(x[:3]))
interpolate.make_interp_spline(a(x),a(y))(a(x[:3]))
"""
SKLEARN = """
preprocessing.StandardScaler().fit_transform(a(X)) preprocessing.MinMaxScaler().fit_transform(a(X))
preprocessing.MaxAbsScaler().fit_transform(a(X)) preprocessing.Normalizer().fit_transform(a(X))
preprocessing.Binarizer().fit_transform(a(X)) preprocessing.KernelCenterer().fit_transform(a((X@X.T)))
preprocessing.LabelEncoder().fit_transform(a(labels)) preprocessing.PolynomialFeatures(2).fit_transform(a(X))
decomposition.PCA(2,svd_solver="full").fit_transform(a(X))
decomposition.PCA(2,svd_solver="covariance_eigh").fit_transform(a(X))
linear_model.Ridge(solver="svd").fit(a(X),a(z)).coef_
discriminant_analysis.LinearDiscriminantAnalysis().fit(a(X),a(labels)).predict(a(X))
mixture.GaussianMixture(2,random_state=0,init_params="random").fit(a(X)).means_
naive_bayes.GaussianNB().fit(a(X),a(labels)).predict(a(X)) linear_model.RidgeCV().fit(a(X),a(z)).coef_
metrics.accuracy_score(a(labels),a(1-labels)) metrics.r2_score(a(z),a(z*1.1)) metrics.mean_squared_error(a(z),a(z*1.1))
metrics.mean_absolute_error(a(z),a(z*1.1)) metrics.mean_absolute_percentage_error(a(z),a(z*1.1))
metrics.zero_one_loss(a(labels),a(labels)) metrics.confusion_matrix(a(labels),a(1-labels))
metrics.f1_score(a(labels),a(labels)) metrics.precision_score(a(labels),a(labels))
metrics.log_loss(a(labels),a(np.clip(np.abs(X[:,0]),.1,.9))) metrics.roc_auc_score(a(labels),a(X[:,0]))
metrics.pairwise.cosine_similarity(a(X)) metrics.pairwise.euclidean_distances(a(X)) metrics.pairwise.rbf_kernel(a(X))
metrics.pairwise.polynomial_kernel(a(X)) metrics.pairwise.paired_cosine_distances(a(X),a(X))
model_selection.train_test_split(a(X),random_state=0)[0] metrics.explained_variance_score(a(z),a(z*1.1))
metrics.max_error(a(z),a(z*1.1)) metrics.d2_tweedie_score(a(z),a(z*1.1))
linear_model.LogisticRegression().fit(a(X),a(labels)).coef_
kernel_approximation.Nystroem(n_components=5,random_state=0).fit_transform(a(X))
"""
MODULES = (
    "scipy.differentiate", "scipy.fft", "scipy.integrate", "scipy.interpolate", "scipy.linalg", "scipy.ndimage",
    "scipy.optimize", "scipy.signal", "scipy.special", "scipy.stats", "scipy.cluster.vq", "scipy.spatial.distance",
    "sklearn.decomposition", "sklearn.discriminant_analysis", "sklearn.kernel_approximation", "sklearn.linear_model",
    "sklearn.metrics", "sklearn.mixture", "sklearn.model_selection", "sklearn.naive_bayes", "sklearn.preprocessing",
)  # fmt: skip
x = np.linspace(0.1, 0.9, 12).astype("float32")
points = np.random.RandomState(0).randn(40, 4).astype("float32")
VALUES = {
    "x": x, "y": np.sin(x), "m": np.array([[4, 1, 0.5], [1, 3, 0.2], [0.5, 0.2, 2]], "float32"), "X": points,
    "labels": (points[:, 0] > 0).astype("int32"), "z": points @ np.array([1, 2, 3, 4], "float32"), "np": np,
    "parabola": lambda t: t**2 - 0.3,
}  # fmt: skip


def result_of(text, make):
    """The result of a call, or the error."""
    names = VALUES | {name.rpartition(".")[2]: importlib.import_module(name) for name in MODULES} | {"a": make}
    try:
        with importlib.import_module("sklearn").config_context(array_api_dispatch=True):
            return np.asarray(eval(text, names)).astype("complex128")
    except Exception as error:
        return error


def main():
    """Print for each call `same`, `differs`, `bare fails`, or the error that only an `Array` raises."""
    warnings.simplefilter("ignore")
    jax.config.update("jax_enable_x64", True)
    (library,) = sys.argv[1:]
    make = {"numpy": np.asarray, "jax": jnp.asarray}[library]
    found = {}
    for text in (SCIPY + SKLEARN).split():
        with use_rules(library):
            bare, ours = result_of(text, make), result_of(text, lambda value: Array(make(value)))
        if isinstance(bare, Exception):
            said = "bare fails"
        elif isinstance(ours, Exception):
            said = str(ours).partition("\n")[0]
        else:
            said = "same" if np.allclose(bare, ours, rtol=1e-3, atol=1e-4, equal_nan=True) else "differs"
        found[text] = said
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
