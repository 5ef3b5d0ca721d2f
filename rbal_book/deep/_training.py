"""Training with checkpoints, and scores of a trained network."""

import contextlib
import hashlib
import json
import time
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch.nn.functional import binary_cross_entropy_with_logits
from tqdm.auto import tqdm

from rbal._support.files import DataError, atomic
from rbal._support.validation import number, positive_int
from rbal.metrics import evaluate

from ._weights import read_tensors

FORMAT = "rbal_book.deep checkpoint 1"
RHO, EPS = 0.9, 1e-7  # of RMSprop, as Keras has them


def train(
    model,
    images,
    y,
    *,
    epochs,
    batch_size=128,
    lr=1e-5,
    decay=1e-5,
    weight_pos=1.0,
    weight_neg=1.0,
    validation=None,
    checkpoint=None,
    seed=0,
    device=None,
    progress=True,
):
    """Train all layers of a classifier by RMSprop on the cross-entropy, with the paper's settings by default.

    After step t the learning rate is lr/(1 + decay·t). A seed fixes the order of the images, and with it, on one kind
    of machine and number of threads, every weight. With a checkpoint, an interrupted training goes on after its last
    full epoch, to the same weights as if it had not been interrupted; and one that is finished goes on to more epochs.

    Parameters
    ----------
    model : Classifier
        Trained in place.
    images : (n, h, w, 3) array of uint8
        Or (n, D) features, for a classifier on :class:`FeatureInput`.
    y : (n,) array
        Labels +1 and -1.
    epochs : int
        Passes through the images.
    batch_size : int
        Images a step.
    lr, decay : float
        Learning rate, and its decay a step.
    weight_pos, weight_neg : float
        Factors on the loss of each class.
    validation : dict, optional
        Sets (images, y) by name, on which the model is evaluated after each epoch.
    checkpoint : path, optional
        File that is written after each epoch, and from which to go on.
    seed : int
        Of the order of the images.
    device : str, optional
        Where to compute; by default a graphics card, where there is one.
    progress : bool
        Show a progress bar.

    Returns
    -------
    pandas.DataFrame
        A row for each epoch: epoch, step, train_loss (mean over the epoch, weighted), seconds and cpu_seconds of
        the training, and every metric of :func:`rbal.metrics.evaluate` on every validation set, as ``name_metric``.

    Raises
    ------
    DataError
        When the checkpoint is damaged.
    ValueError
        When it belongs to another model, other data or other settings.
    """
    images = np.asarray(images)
    y = _checked_labels(y, images)
    epochs, batch_size = positive_int("epochs", epochs), positive_int("batch_size", batch_size)
    settings = {
        "batch_size": batch_size,
        "lr": number("lr", lr, 0.0, open_low=True),
        "decay": number("decay", decay, 0.0),
        "weight_pos": number("weight_pos", weight_pos, 0.0, open_low=True),
        "weight_neg": number("weight_neg", weight_neg, 0.0, open_low=True),
        "seed": seed,
        "data": _digest(images, y),
        "model": _digest(*model.state_dict().values()),
    }
    if not getattr(model.backbone, "preprocess", True):
        settings["preprocess"] = False  # checkpoints from before this choice have no such entry
    model.to(chosen(device), memory_format=torch.channels_last)
    optimizer = torch.optim.RMSprop(model.parameters(), lr=lr, alpha=RHO, eps=EPS)
    history = _resume(checkpoint, settings, model, optimizer, epochs)
    total = epochs * len(_batches(len(y), batch_size, seed, 0))
    with _deterministic(), tqdm(total=total, disable=not progress, unit="step") as bar:
        for epoch in range(len(history), epochs):
            bar.n = history[-1]["step"] if history else 0
            history.append(_epoch(model, optimizer, images, y, epoch, settings, bar))
            for name, (held_out, labels) in (validation or {}).items():
                metrics = evaluate(predict(model, held_out), labels)
                history[-1] |= {f"{name}_{metric}": value for metric, value in metrics.items()}
            _save(checkpoint, settings, model, optimizer, history)
    return pd.DataFrame(history)


def predict(model, images, *, batch_size=256, progress=False):
    """Compute scores of images: the logits of a classifier, or all outputs of another network.

    Parameters
    ----------
    model : Classifier or ResNet
        Used in evaluation mode, where it stands.
    images : (n, h, w, 3) array of uint8
        Or features, as for :func:`train`.
    batch_size : int
        Images at a time; the scores do not depend on it but for rounding.
    progress : bool
        Show a progress bar.

    Returns
    -------
    (n,) or (n, n_classes) array
    """
    images = np.asarray(images)
    return np.concatenate(list(outputs(model, model, images, batch_size, progress)))


def outputs(model, function, images, batch_size, progress, start=0):
    """Yield the outputs of a function of prepared images, batch by batch, with the model in evaluation mode."""
    batch_size, was_training = positive_int("batch_size", batch_size), model.training
    model.eval()
    bar = tqdm(total=len(images), initial=start, disable=not progress, unit="image")
    try:
        for first in range(start, len(images), batch_size):
            with torch.inference_mode():
                out = function(model.prepare(images[first : first + batch_size])).cpu().numpy()
            yield out
            bar.update(len(out))
    finally:
        bar.close()
        model.train(was_training)


def chosen(device):
    """Return a device by name, or the best that is there."""
    if device is not None:
        return torch.device(device)
    if torch.cuda.is_available():
        return torch.device("cuda")
    return torch.device("mps" if torch.backends.mps.is_available() else "cpu")


def _epoch(model, optimizer, images, y, epoch, settings, bar):
    """Make one pass over the images; return its step, its loss and the time it took."""
    model.train()
    begin, cpu, losses = time.perf_counter(), time.process_time(), []
    batches = _batches(len(y), settings["batch_size"], settings["seed"], epoch)
    for k, batch in enumerate(batches):
        step = epoch * len(batches) + k
        for group in optimizer.param_groups:
            group["lr"] = settings["lr"] / (1.0 + settings["decay"] * step)
        x = model.prepare(images[batch])
        target = torch.from_numpy((y[batch] > 0).astype(np.float32)).to(x.device)
        weight = torch.where(target > 0, settings["weight_pos"], settings["weight_neg"])
        loss = binary_cross_entropy_with_logits(model(x), target, weight=weight)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item() * len(batch))
        bar.update()
    if not np.isfinite(losses).all():
        raise FloatingPointError(f"the loss is not finite any more in epoch {epoch + 1}: lower lr")
    return {
        "epoch": epoch + 1,
        "step": (epoch + 1) * len(batches),
        "train_loss": sum(losses) / len(y),
        "seconds": round(time.perf_counter() - begin, 3),
        "cpu_seconds": round(time.process_time() - cpu, 3),
    }


def _batches(n, size, seed, epoch):
    """Return the rows of each batch. They follow from seed and epoch alone, so that nothing need be remembered."""
    order = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(epoch,))).permutation(n)
    ends = list(range(size, n, size))
    if ends and n - ends[-1] == 1:  # batch normalisation has no use for a batch of one
        ends.pop()
    return np.split(order, ends)


@contextlib.contextmanager
def _deterministic():
    """Make sums reproducible, on a graphics card too."""
    before = torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark
    torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark = True, False
    try:
        yield
    finally:
        torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark = before


# ---- checkpoints


def _save(path, settings, model, optimizer, history):
    if path is None:
        return
    state = {
        "format": FORMAT,
        "settings": json.dumps(settings),
        "history": json.dumps(history),
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
    }
    with atomic(path) as file:
        torch.save(state, file)


def _resume(path, settings, model, optimizer, epochs):
    """Restore the model and the optimizer, and return the history so far; empty when there is no checkpoint."""
    if path is None or not Path(path).exists():
        return []
    state = read_tensors(path)
    if not isinstance(state, dict) or state.get("format") != FORMAT:
        raise DataError(f"{path} is no checkpoint of the format {FORMAT!r}: take another path, or delete it")
    stored, history = json.loads(state["settings"]), json.loads(state["history"])
    if differing := sorted(name for name in settings | stored if stored.get(name) != settings.get(name)):
        name = differing[0]
        raise ValueError(
            f"checkpoint {path} belongs to another training: {name} is {stored.get(name)!r} there and "
            f"{settings.get(name)!r} here; take another path, or delete it"
        )
    if len(history) > epochs:
        raise ValueError(f"epochs must be at least the {len(history)} of the checkpoint {path}, got {epochs}")
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    return history


def _digest(*arrays):
    """Return the hexadecimal digest of the contents of arrays or tensors."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(array.cpu() if isinstance(array, torch.Tensor) else array))
    return digest.hexdigest()[:32]


def _checked_labels(y, images):
    y = np.asarray(y)
    if y.shape != (len(images),) or not np.isin(y, (-1, 1)).all():
        raise ValueError(f"y must be ({len(images)},) labels +1 and -1, got shape {y.shape} with {np.unique(y)[:5]}")
    return y.astype(np.int8)
