r"""Deep classifiers, with PyTorch: a pretrained ResNet-50, its training on two classes, and its features.

Nothing here is loaded by ``import rbal``. It needs PyTorch, which ``pip install rbal[deep]`` brings; a graphics card is
used where there is one. Labels are ±1, scores are logits: positive where the network answers the positive class.
"""

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    raise ImportError("rbal_book.deep needs PyTorch, which is not installed: pip install rbal[deep]") from error

from rbal.metrics import best_threshold, evaluate

from ._features import extract
from ._networks import Classifier, FeatureInput, ResNet, SmallCNN
from ._training import predict, train
from ._weights import imagenet_labels, load_resnet50

__all__ = [
    "Classifier",
    "FeatureInput",
    "ResNet",
    "SmallCNN",
    "best_threshold",
    "evaluate",
    "extract",
    "imagenet_labels",
    "load_resnet50",
    "predict",
    "train",
]
