"""Networks on two classes of CIFAR-10, imbalanced and balanced, and heads on their features.

``networks`` fine-tunes ResNet-50, imbalanced and balanced, for several seeds. ``features`` computes what the frozen
network, and a small one that is trained from scratch, make of all images. ``heads`` trains heads on those features:
with every remedy for imbalance, and against the share of positives. ``frozen`` trains a linear head on the very images
of each network, and tests it on the same ones. The defaults are what most of the chapter shows;
``--paper`` is the setting of the paper, for a machine with a graphics card, or with fewer ``--epochs``.

How it runs: ``make deep``, hours; it needs PyTorch.
How it resumes: what is finished is kept in the working folder and not done again, and a training goes on after its last
epoch. More epochs, seeds or trials than before cost only what is new.
Where it is stored: the tables and arrays ``deep/…``, brought up to date whenever something is new; those of ``--paper``
as ``deep/paper/…``, with a working folder of their own.
"""

import dataclasses
import json
import os
import platform
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from rbal import __version__, experiments
from rbal._support.files import atomic
from rbal.learners import LinearSVM
from rbal.samplers import RandomMixSampler

from .. import deep
from ..datasets import images
from ..datasets.internal import save_arrays
from ._stored import RESULTS, WORK, write

MIXINGS = {"undersampling": 0.0, "mixed": 0.5, "oversampling": 1.0}
REMEDIES = ("as is", *MIXINGS, "class weights")
BOTH = ("as is", "balanced")
NETWORKS = (*BOTH, *MIXINGS, "class weights")  # in order of training
TEST = 500  # images of each class on which the networks are tested
RIDGE = 0.1  # ridge of the linear heads
TOTALS, SHARES = (400, 1100), (0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9)  # sizes and shares of positives, linear heads
KEPT = {"resnet50": 128, "cnn": 64}  # number of principal components that the chapter uses
BENCHES = {}  # study and features of a trial, by a text that describes them: the store identifies a trial by it


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of a run; every field is an option of the command line."""

    negatives: int = 2500  # N
    ratio: float = 0.1  # P/N of the imbalanced set
    epochs: int = 8
    batch_size: int = 128
    lr: float = 1e-4
    decay: float = 1e-5
    preprocess: int = 1  # 1: pixels in the range that the weights were trained for; 0: as they are, as in the paper
    seeds: int = 3
    held_out: float = 0.25  # images set apart for the threshold, as a share of the imbalanced training set
    head_epochs: int = 30
    cnn_images: int = 10_000  # training images of the small network, which are not used as features
    cnn_epochs: int = 8
    cnn_lr: float = 1e-3
    trials: int = 5  # trials of every head
    shown: int = 4000  # images of each class whose principal components are stored
    shown_test: int = 1000


PAPER = {"negatives": 25_000, "epochs": 100, "lr": 1e-5, "preprocess": 0, "seeds": 1}


class Study:
    """Data, settings and folders of one run."""

    def __init__(self, data, settings, work, out, build=deep.load_resnet50, strategies=NETWORKS, frozen=None):
        self.settings, self.work, self.out = settings, Path(work), Path(out)
        self.build, self.strategies, self.frozen = build, strategies, frozen or build
        self.pos, self.neg, test = (rows.reshape(-1, *data.shape) for rows in (data.X_pos, data.X_neg, data.X_test))
        half = len(test) // 2
        self.test_pos, self.test_neg = test[:half], test[half:]
        self.work.mkdir(parents=True, exist_ok=True)

    def draw(self, seed):
        """Draw the rows of a balanced training set, and those of the images set apart for the threshold."""
        rng, s = np.random.default_rng([14, seed]), self.settings
        pos, neg = (rng.choice(len(part), s.negatives, replace=False) for part in (self.pos, self.neg))
        n_neg = min(round(s.held_out * s.negatives), len(self.test_neg) - TEST)
        sizes = (len(self.test_pos), max(1, round(s.ratio * n_neg))), (len(self.test_neg), n_neg)
        apart = [TEST + rng.choice(half - TEST, n, replace=False) for half, n in sizes]
        return pos, neg, apart

    def training_set(self, seed, strategy):
        """Return the rows of positives and negatives, with repetitions, and the weights of the two classes."""
        pos, neg, _ = self.draw(seed)
        if strategy == "balanced":
            return pos, neg, 1.0, 1.0
        pos = pos[: round(self.settings.ratio * len(neg))]
        if strategy in MIXINGS:
            y = np.repeat([1, -1], [len(pos), len(neg)])
            sampler = RandomMixSampler(mixing=MIXINGS[strategy], random_state=seed)
            sampler.fit_resample(np.zeros((len(y), 1)), y)
            rows, at = sampler.sample_indices_, len(pos)
            return pos[rows[rows < at]], neg[rows[rows >= at] - at], 1.0, 1.0
        if strategy == "class weights":
            total = len(pos) + len(neg)
            return pos, neg, 0.5 * total / len(pos), 0.5 * total / len(neg)
        return pos, neg, 1.0, 1.0

    def epochs(self, n, epochs):
        """Return how many passes through n images take as many steps as ``epochs`` through the imbalanced set."""
        return max(1, round(epochs * (1 + self.settings.ratio) * self.settings.negatives / n))

    def store(self, name, arrays):
        """Write arrays to the folder of results."""
        save_arrays(self.out / name, arrays, compressed=True)

    def table(self, name, frame):
        """Write a table to the folder of results."""
        write(self.out / name, frame, float_format="%.5f")

    def about(self, **news):
        """Write down how the results were made."""
        import torch

        path = self.out / "about.json"
        told = json.loads(path.read_text()) if path.exists() else {}
        told |= {
            "settings": dataclasses.asdict(self.settings),
            "versions": {"rbal": __version__, "torch": torch.__version__, "numpy": np.__version__},
            "machine": f"{platform.machine()}, {os.cpu_count()} cores, torch on {torch.get_num_threads()}",
            **news,
        }
        with atomic(path) as file:
            file.write((json.dumps(told, indent=1) + "\n").encode())


# ---- networks


def networks(study):
    """Fine-tune all layers, seed by seed, and keep each history, the final scores and the last features."""
    s, rows, scores = study.settings, [], {}
    for seed in range(s.seeds):
        for strategy in study.strategies:
            name = f"{strategy}-{seed}".replace(" ", "_")
            done = study.work / f"{name}-{s.epochs}.npz"
            history = done.with_suffix(".csv")
            if not done.exists():
                table, arrays = fine_tune(study, strategy, seed, study.work / f"{name}.pt")
                table.to_csv(history, index=False)
                save_arrays(done, arrays)
            rows.append(pd.read_csv(history).assign(strategy=strategy, seed=seed))
            with np.load(done) as stored:
                scores |= {f"{strategy}/{seed}/{key}": stored[key] for key in stored.files}
            collect(study, rows, scores)


def fine_tune(study, strategy, seed, checkpoint):
    """Train one network; return the history, and its scores of test and held-out images and last features by name."""
    s, (pos, neg, weight_pos, weight_neg) = study.settings, study.training_set(seed, strategy)
    apart_pos, apart_neg = study.draw(seed)[2]
    test = np.concatenate([study.test_pos[:TEST], study.test_neg[:TEST]]), np.repeat([1, -1], TEST)
    model = deep.Classifier(study.build(), seed=seed)
    X, y = np.concatenate([study.pos[pos], study.neg[neg]]), np.repeat([1, -1], [len(pos), len(neg)])
    epochs = s.epochs if strategy == "balanced" else study.epochs(len(y), s.epochs)
    options = {"batch_size": s.batch_size, "lr": s.lr, "decay": s.decay, "seed": seed}
    options |= {"weight_pos": weight_pos, "weight_neg": weight_neg, "checkpoint": checkpoint}
    history = deep.train(model, X, y, epochs=epochs, validation={"test": test}, **options)
    apart = np.concatenate([study.test_pos[apart_pos], study.test_neg[apart_neg]])
    arrays = {
        "test": deep.predict(model, test[0]).astype(np.float32),
        "apart": deep.predict(model, apart).astype(np.float32),
        "n_apart_pos": np.int64(len(apart_pos)),
        "last": deep.extract(model, test[0], checkpoint.with_suffix(f".{len(history)}.npy"), progress=False)[:],
    }
    return history, arrays


def collect(study, rows, scores):
    """Store the results of all networks so far: histories, scores, metrics at both thresholds, principal components."""
    study.table("epochs.csv", pd.concat(rows).set_index(["strategy", "seed"]).reset_index())
    finals, kept, y = [], {}, np.repeat([1, -1], TEST)
    for name in dict.fromkeys(key.rpartition("/")[0] for key in scores):
        strategy, seed = name.split("/")
        test, apart, n_pos = (scores[f"{name}/{key}"] for key in ("test", "apart", "n_apart_pos"))
        threshold = deep.best_threshold(apart, np.repeat([1, -1], [n_pos, len(apart) - n_pos]))
        for label, at in (("trained", 0.0), ("moved", threshold)):
            finals.append(
                {"strategy": strategy, "seed": int(seed), "threshold": label, "at": at, **deep.evaluate(test, y, at)}
            )
        kept[f"{name}/scores"] = test.astype(np.float16)
        if seed == "0":
            kept[f"{name}/components"] = components(scores[f"{name}/last"], 50).astype(np.float16)
    study.table("networks.csv", pd.DataFrame(finals))
    study.store("scores.npz", kept)
    study.about()


def components(X, n):
    """Return the first n principal components of rows X (N, D), as (N, n)."""
    _, vectors = np.linalg.eigh(np.cov(X, rowvar=False))
    return (X - X.mean(axis=0)) @ vectors[:, ::-1][:, :n]


# ---- features


def features(study):
    """Compute features of all images by the frozen and by a small network; store their spectra and some rows."""
    for name, classes in feature_sets(study).items():
        moments = classes.moments
        study.store(
            f"{name}-spectrum.npz",
            {
                "eigenvalues": moments.eigenvalues.astype(np.float32),
                "delta_sq": moments.delta_sq.astype(np.float32),
                "zeros": np.float32(np.mean([np.mean(part == 0) for part in classes._test])),
            },
        )
        study.store(f"{name}-rows.npz", reduced(study, classes, KEPT[name]))
    study.about()


def feature_sets(study):
    """Return the features of both networks by name, as two classes with all test images as their test set."""
    everything = np.concatenate([study.pos, study.neg, study.test_pos, study.test_neg])
    network = study.build()
    sets = {"resnet50": (deep.extract(network, everything, study.work / "resnet50.npy"), 0)}
    skip = study.settings.cnn_images // 2
    sets["cnn"] = deep.extract(small_network(study), everything, study.work / "cnn.npy"), skip
    found = {}
    for name, (table, start) in sets.items():
        ends = np.cumsum([len(part) for part in (study.pos, study.neg, study.test_pos, study.test_neg)])[:-1]
        pos, neg, test_pos, test_neg = np.split(table, ends)
        found[name] = images.Images(
            name=name,
            labels=("positive", "negative"),
            shape=(table.shape[1],),
            train=[pos[start:], neg[start:]],
            test=[test_pos, test_neg],
            examples=None,
            packed=False,
        )
    return found


def small_network(study):
    """Train the small network on the first images of each class, and return it."""
    s, half = study.settings, study.settings.cnn_images // 2
    backbone = deep.SmallCNN()
    model = deep.Classifier(backbone, hidden=64)
    X, y = np.concatenate([study.pos[:half], study.neg[:half]]), np.repeat([1, -1], half)
    test = np.concatenate([study.test_pos[:TEST], study.test_neg[:TEST]]), np.repeat([1, -1], TEST)
    options = {"batch_size": s.batch_size, "lr": s.cnn_lr, "validation": {"test": test}}
    history = deep.train(model, X, y, epochs=s.cnn_epochs, checkpoint=study.work / "cnn.pt", **options)
    study.table("cnn.csv", history)
    return backbone.eval()


def reduced(study, classes, n):
    """Return n principal components of some rows, in units of their mean variance, as bytes and a scale (n,)."""
    s, m = study.settings, classes.moments
    half = 0.5 * m.delta / np.sqrt(m.L)
    values, vectors = np.linalg.eigh(m._covariance + np.outer(half, half))  # covariance of both classes together
    axes = vectors[:, ::-1][:, :n] / np.sqrt(values[::-1][:n].mean())
    parts = [part[: s.shown] for part in classes._train] + [part[: s.shown_test] for part in classes._test]
    rows = [(part - m.M) @ axes for part in parts]
    scale = np.max([np.abs(part).max(axis=0) for part in rows], axis=0) / 127
    names = ("pos", "neg", "test_pos", "test_neg")
    return {"scale": scale.astype(np.float32)} | {
        name: np.rint(part / scale).astype(np.int8) for name, part in zip(names, rows, strict=True)
    }


# ---- heads


def heads(study):
    """Train linear heads against the share of positives, and heads of both kinds with every remedy."""
    s, sets = study.settings, feature_sets(study)
    grid = {"total": TOTALS, "rho": SHARES}
    for name, classes in sets.items():
        run = partial(experiments.run, trials=s.trials, seed=14, n_jobs=1)
        trial = partial(linear_head, bench=bench(study, name, classes))
        study.table(f"{name}-heads.csv", run(trial, grid, store=study.work / f"{name}-heads.jsonl"))
    cells = {"strategy": [*REMEDIES, "balanced"], "head": ["linear", "dense"], "draw": list(range(s.trials))}
    names = ("negatives", "ratio", "held_out", "head_epochs", "batch_size", "lr", "decay")
    trial = partial(remedied_head, bench=bench(study, "resnet50", sets["resnet50"], names))
    table = experiments.run(trial, cells, trials=1, seed=14, n_jobs=1, store=study.work / "remedies.jsonl")
    study.table("remedies.csv", table)
    study.about()


def bench(study, name, classes, settings=()):
    """Return a key under which a trial finds its study and features; it holds all that the results depend on."""
    owner = json.loads((study.work / f"{name}.npy.json").read_text())
    key = json.dumps([owner, RIDGE, *(getattr(study.settings, setting) for setting in settings)])
    BENCHES[key] = study, classes
    return key


def linear_head(rng, bench, total, rho):
    """Train a logistic regression with a ridge on features, and return its metrics on all test images."""
    _, classes = BENCHES[bench]
    P = round(rho * total)
    clf = logistic(*classes.sample(P, total - P, rng))
    m = deep.evaluate(clf.decision_function(classes.X_test), classes.y_test)
    return {**clf.order_parameters(classes.moments)._asdict(), **{k: m[k] for k in ("tpr", "tnr", "ba", "auc")}}


def logistic(X, y, sample_weight=None):
    """Fit a logistic regression with a ridge to X (n, D), within the span of the samples, where its weights lie."""
    axes, rows = np.linalg.qr(X.T)
    n, D = axes.shape[1], axes.shape[0]
    clf = LinearSVM(lam=RIDGE, loss="logistic").fit(np.sqrt(n / D) * rows.T, y, sample_weight)
    clf.J_, clf.n_features_in_ = axes @ clf.J_, D
    return clf


def remedied_head(rng, bench, strategy, head, draw):
    """Train a head on frozen features, with the same images, remedies and held-out images as the networks."""
    study, classes = BENCHES[bench]
    pos, neg, weight_pos, weight_neg = study.training_set(draw, strategy)
    X = np.concatenate([classes._train[0][pos], classes._train[1][neg]])
    y = np.repeat([1, -1], [len(pos), len(neg)])
    if head == "linear":
        # a repeated row is one row with a weight
        rows, index, times = np.unique(np.r_[pos, -1 - neg], return_index=True, return_counts=True)
        weight = times * np.where(rows >= 0, weight_pos, weight_neg)
        score = logistic(X[index].astype(float), y[index], weight).decision_function
    else:
        s = study.settings
        clf = deep.Classifier(deep.FeatureInput(X.shape[1]), seed=draw)
        epochs = s.head_epochs if strategy == "balanced" else study.epochs(len(y), s.head_epochs)
        options = {"batch_size": s.batch_size, "lr": s.lr, "decay": s.decay, "progress": False}
        deep.train(clf, X, y, epochs=epochs, weight_pos=weight_pos, weight_neg=weight_neg, seed=draw, **options)
        score = partial(deep.predict, clf)
    apart = study.draw(draw)[2]
    held_out = [score(part[rows]) for part, rows in zip(classes._test, apart, strict=True)]
    at = deep.best_threshold(np.concatenate(held_out), np.repeat([1, -1], [len(part) for part in apart]))
    rest = [score(np.delete(part, rows, axis=0)) for part, rows in zip(classes._test, apart, strict=True)]
    y_rest = np.repeat([1, -1], [len(part) for part in rest])
    trained, moved = (deep.evaluate(np.concatenate(rest), y_rest, threshold) for threshold in (0.0, at))
    rates = {name: trained[name] for name in ("ba", "tpr", "tnr", "auc")}
    return {**rates, "moved": moved["ba"]}


# ---- frozen features against fine-tuning


def frozen(study):
    """Train a linear head on frozen features of the images of each network; store its scores of the test images."""
    sets = {
        f"{name}/{seed}": study.training_set(seed, name)[:2] for seed in range(study.settings.seeds) for name in BOTH
    }
    rows = [np.unique(np.concatenate(part)) for part in zip(*sets.values(), strict=True)]
    parts = [study.pos[rows[0]], study.neg[rows[1]], study.test_pos[:TEST], study.test_neg[:TEST]]
    table = deep.extract(study.frozen(), np.concatenate(parts), study.work / "frozen.npy")
    pos, neg, test = np.split(table, np.cumsum([len(part) for part in parts])[:2])
    kept = {}
    for name, (some_pos, some_neg) in sets.items():
        X = np.concatenate([pos[np.searchsorted(rows[0], some_pos)], neg[np.searchsorted(rows[1], some_neg)]])
        head = logistic(X.astype(float), np.repeat([1, -1], [len(some_pos), len(some_neg)]))
        kept[f"{name}/scores"] = head.decision_function(test.astype(float)).astype(np.float16)
    study.store("frozen.npz", kept)
    study.about()


PARTS = {"networks": networks, "features": features, "heads": heads, "frozen": frozen}


OPTIONS = {
    **{
        f"--{field.name.replace('_', '-')}": {"type": field.type, "help": f"({field.default})"}
        for field in dataclasses.fields(Settings)
    },
    "--paper": {"action": "store_true", "help": "all images, 100 epochs: hours on a graphics card"},
    "--parts": {"nargs": "+", "choices": PARTS},
    "--strategies": {"nargs": "+", "choices": NETWORKS},
    "--work": {"type": Path, "help": "folder of checkpoints (%(default)s)"},
    "--out": {"type": Path, "help": "folder of results (that of the package)"},
    "--threads": {"type": int, "help": "of torch; by default as many as there are cores"},
}


def run(
    paper=False, parts=tuple(PARTS), strategies=NETWORKS, work=WORK / "deep", out=RESULTS, threads=None, **settings
):
    """Run the given parts; ``settings`` are fields of ``Settings`` that differ from their defaults."""
    import torch

    if threads:
        torch.set_num_threads(threads)
    settings = Settings(**{**(PAPER if paper else {}), **settings})
    build = partial(deep.load_resnet50, preprocess=bool(settings.preprocess))
    data, folder = images.load_cifar10(n_test=10_000), "paper" if paper else ""
    study = Study(data, settings, work / folder, out / "deep" / folder, build, strategies, frozen=deep.load_resnet50)
    for part in parts:
        with threadpool_limits(threads):
            PARTS[part](study)
