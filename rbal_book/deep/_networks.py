"""The networks: ResNet-50 in the two variants that weights are published for, a small one, and the head on top."""

from typing import NamedTuple

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from rbal._support.validation import flag, one_of, positive_int


class Variant(NamedTuple):
    """Details in which published ResNet-50s differ, besides their weights."""

    stride_in_3x3: bool  # which convolution of a block halves the image: the 3×3, or the first 1×1
    conv_bias: bool
    eps: float  # of the batch normalisation
    channels: tuple  # order of red (0), green (1), blue (2) in the input
    scale: float  # of the pixels 0 … 255, before mean and deviation
    mean: tuple
    std: tuple


VARIANTS = {
    "keras": Variant(False, True, 1e-3, (2, 1, 0), 1.0, (103.939, 116.779, 123.68), (1.0, 1.0, 1.0)),
    "torchvision": Variant(True, False, 1e-5, (0, 1, 2), 1 / 255, (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
}
EXPANSION = 4  # channels that leave a block, over those inside


class _Network(nn.Module):
    """Networks that take images with values 0 … 255."""

    channels, scale, mean, std = (0, 1, 2), 1 / 127.5, (1.0, 1.0, 1.0), (1.0, 1.0, 1.0)
    size, preprocess = None, True

    def prepare(self, images):
        """Turn images into the tensor that the network takes.

        Parameters
        ----------
        images : (n, h, w, 3) array of uint8
            Red, green, blue.

        Returns
        -------
        torch.Tensor
            (n, 3, h, w), resized where the network has a size of its own, and normalised unless it takes the pixels as
            they are, on the network's device.
        """
        device = next(self.parameters()).device
        x = torch.from_numpy(np.ascontiguousarray(checked_images(images))).to(device)
        x = x.permute(0, 3, 1, 2).float()
        if self.size is not None and x.shape[2:] != (self.size, self.size):
            x = functional.interpolate(x, (self.size, self.size), mode="bilinear", antialias=True)
        if not self.preprocess:
            return x.contiguous(memory_format=torch.channels_last)
        mean, std = (torch.tensor(v, device=device).view(1, 3, 1, 1) for v in (self.mean, self.std))
        x = (self.scale * x[:, list(self.channels)] - mean) / std
        return x.contiguous(memory_format=torch.channels_last)


def checked_images(images):
    """Return images as an array, when they are (n, h, w, 3) of uint8."""
    images = np.asarray(images)
    if images.ndim != 4 or images.shape[3] != 3 or images.dtype != np.uint8:
        raise ValueError(f"images must be (n, h, w, 3) of uint8, got {images.shape} of {images.dtype}")
    return images


class Convolution(nn.Conv2d):
    """Convolution with a kernel of odd side, which takes small images as rows of numbers: faster on a processor.

    The outputs are those of ``nn.Conv2d`` but for rounding. Of an image of 32×32 the last two stages of ResNet-50 see
    2×2 and 1×1 pixels, where most of a 3×3 kernel lies on the zeros around them and need not be multiplied.
    """

    def __init__(self, inside, outside, kernel, *, stride=1, bias=True):
        super().__init__(inside, outside, kernel, stride=stride, padding=kernel // 2, bias=bias)

    def forward(self, x):
        """Map (n, inside, h, w) to (n, outside, h/stride, w/stride)."""
        (h, w), kernel, stride = x.shape[2:], self.kernel_size[0], self.stride[0]
        weight = self.weight.permute(0, 2, 3, 1)  # (outside, kernel, kernel, inside), without a copy in channels_last
        if kernel == 1 and h * w <= 16 * stride**2:
            rows = x[:, :, ::stride, ::stride].permute(0, 2, 3, 1)
            out = functional.linear(rows.reshape(-1, self.in_channels), weight.flatten(1), self.bias)
            return out.view(*rows.shape[:3], -1).permute(0, 3, 1, 2)
        if kernel == 3 and stride == 1 and max(h, w) <= 2:  # every pixel is under the kernel of every other
            seen = [weight[:, 1 - i : 1 - i + h, 1 - j : 1 - j + w] for i, j in np.ndindex(h, w)]
            matrix = torch.stack(seen).reshape(h * w * self.out_channels, h * w * self.in_channels)
            bias = None if self.bias is None else self.bias.repeat(h * w)
            out = functional.linear(x.permute(0, 2, 3, 1).flatten(1), matrix, bias)
            return out.view(len(x), h, w, -1).permute(0, 3, 1, 2)
        return super().forward(x)


class Bottleneck(nn.Module):
    """Residual block: convolutions 1×1, 3×3, 1×1, and a way around them."""

    def __init__(self, inside, width, stride, variant):
        super().__init__()
        outside = EXPANSION * width
        first, second = (1, stride) if variant.stride_in_3x3 else (stride, 1)
        bias, norm = {"bias": variant.conv_bias}, {"eps": variant.eps}
        self.conv1 = Convolution(inside, width, 1, stride=first, **bias)
        self.bn1 = nn.BatchNorm2d(width, **norm)
        self.conv2 = Convolution(width, width, 3, stride=second, **bias)
        self.bn2 = nn.BatchNorm2d(width, **norm)
        self.conv3 = Convolution(width, outside, 1, **bias)
        self.bn3 = nn.BatchNorm2d(outside, **norm)
        self.downsample = None
        if stride != 1 or inside != outside:
            way_around = Convolution(inside, outside, 1, stride=stride, **bias)
            self.downsample = nn.Sequential(way_around, nn.BatchNorm2d(outside, **norm))

    def forward(self, x):
        """Map ``inside`` channels to four times ``width``."""
        around = x if self.downsample is None else self.downsample(x)
        x = torch.relu(self.bn1(self.conv1(x)))
        x = torch.relu(self.bn2(self.conv2(x)))
        return torch.relu(self.bn3(self.conv3(x)) + around)


class ResNet(_Network):
    """Residual network of bottleneck blocks; by default ResNet-50, with random weights.

    Parameters
    ----------
    variant : {"keras", "torchvision"}
        Whose weights fit. The first halves images in the 1×1 convolutions, has biases, and takes blue, green and red
        less their means; the second halves them in the 3×3, has none, and takes red, green and blue in units of their
        deviations.
    blocks : tuple of int
        Blocks of each stage.
    width : int
        Channels after the first layer.
    n_classes : int
        Outputs of the last layer.
    size : int, optional
        Side to which images are resized; by default they are taken as they are.
    preprocess : bool
        Whether pixels are brought to the range that the weights were trained for, or taken as they are: red, green and
        blue from 0 to 255.

    Attributes
    ----------
    n_features : int
        Length of the features: 2048 for ResNet-50.
    """

    def __init__(self, variant="keras", blocks=(3, 4, 6, 3), width=64, n_classes=1000, size=None, *, preprocess=True):
        super().__init__()
        self.preprocess = flag("preprocess", preprocess)
        kind = VARIANTS[one_of("variant", variant, tuple(VARIANTS))]
        self.variant, self.size = variant, None if size is None else positive_int("size", size)
        self.channels, self.scale, self.mean, self.std = kind.channels, kind.scale, kind.mean, kind.std
        width = inside = positive_int("width", width)
        self.conv1 = nn.Conv2d(3, width, 7, stride=2, padding=3, bias=kind.conv_bias)
        self.bn1 = nn.BatchNorm2d(width, eps=kind.eps)
        self.maxpool = nn.MaxPool2d(3, stride=2, padding=1)
        self.stages = []
        for stage, n_blocks in enumerate(blocks):
            layers = []
            for k in range(positive_int("blocks", n_blocks)):
                stride = 2 if k == 0 and stage > 0 else 1
                layers.append(Bottleneck(inside, width * 2**stage, stride, kind))
                inside = EXPANSION * width * 2**stage
            self.stages.append(f"layer{stage + 1}")
            self.add_module(self.stages[-1], nn.Sequential(*layers))
        self.n_features = inside
        self.fc = nn.Linear(inside, positive_int("n_classes", n_classes))

    def features(self, x):
        """Compute what the last layer sees of prepared images: means over each image, (n, n_features).

        Parameters
        ----------
        x : torch.Tensor

        Returns
        -------
        torch.Tensor
        """
        x = self.maxpool(torch.relu(self.bn1(self.conv1(x))))
        for stage in self.stages:
            x = getattr(self, stage)(x)
        return x.mean(dim=(2, 3))

    def forward(self, x):
        """Compute the logits (n, n_classes) of prepared images."""
        return self.fc(self.features(x))


class SmallCNN(_Network):
    """Small convolutional network, to be trained from scratch.

    Each stage is a 3×3 convolution, batch normalisation, ReLU and 2×2 max pooling; the features are means over what is
    left of the image.

    Parameters
    ----------
    widths : tuple of int
        Channels after each stage.
    seed : int
        Of the random weights.

    Attributes
    ----------
    n_features : int
        The last of ``widths``.
    """

    def __init__(self, widths=(32, 64, 128, 256), seed=0):
        super().__init__()
        layers, inside = [], 3
        for width in widths:
            conv = nn.Conv2d(inside, positive_int("widths", width), 3, padding=1, bias=False)
            layers += [conv, nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(2)]
            inside = width
        self.layers, self.n_features = nn.Sequential(*layers), inside
        generator = torch.Generator().manual_seed(seed)
        for layer in self.layers:
            if isinstance(layer, nn.Conv2d):
                nn.init.kaiming_normal_(layer.weight, nonlinearity="relu", generator=generator)

    def features(self, x):
        """Compute the means over the last maps of prepared images, (n, n_features).

        Parameters
        ----------
        x : torch.Tensor

        Returns
        -------
        torch.Tensor
        """
        return self.layers(x).mean(dim=(2, 3))


class FeatureInput(nn.Module):
    """Stands for a frozen network, whose features are the input.

    Parameters
    ----------
    n_features : int
        How many they are.
    """

    def __init__(self, n_features):
        super().__init__()
        self.n_features = positive_int("n_features", n_features)

    def prepare(self, rows):
        """Turn features into a tensor.

        Parameters
        ----------
        rows : (n, n_features) array

        Returns
        -------
        torch.Tensor
        """
        rows = np.asarray(rows, np.float32)
        if rows.ndim != 2 or rows.shape[1] != self.n_features:
            raise ValueError(f"features must be (n, {self.n_features}), got {rows.shape}")
        return torch.from_numpy(rows)

    def features(self, x):
        """Return the input.

        Parameters
        ----------
        x : torch.Tensor

        Returns
        -------
        torch.Tensor
        """
        return x


class Classifier(nn.Module):
    """A network with a fresh head for two classes: a dense layer with ReLU, and one output.

    The output is the logit: the sigmoid of the paper is part of the loss.

    Parameters
    ----------
    backbone : ResNet, SmallCNN or FeatureInput
        Where the features come from; trained along, where it has weights.
    hidden : int
        Neurons of the dense layer.
    seed : int
        Of the head's random weights, uniform as Glorot and Bengio have them.
    """

    def __init__(self, backbone, hidden=512, seed=0):
        super().__init__()
        hidden = positive_int("hidden", hidden)
        self.backbone = backbone
        self.head = nn.Sequential(nn.Linear(backbone.n_features, hidden), nn.ReLU(), nn.Linear(hidden, 1))
        generator = torch.Generator().manual_seed(seed)
        for layer in (self.head[0], self.head[2]):
            nn.init.xavier_uniform_(layer.weight, generator=generator)
            nn.init.zeros_(layer.bias)

    def prepare(self, images):
        """Turn images into the tensor that the backbone takes.

        Parameters
        ----------
        images : array
            Images, or features for :class:`FeatureInput`.

        Returns
        -------
        torch.Tensor
        """
        return self.backbone.prepare(images).to(self.head[0].weight.device)

    def features(self, x):
        """Compute the last feature layer: outputs of the dense layer on prepared images, (n, hidden).

        Parameters
        ----------
        x : torch.Tensor

        Returns
        -------
        torch.Tensor
        """
        return self.head[:2](self.backbone.features(x))

    def forward(self, x):
        """Compute the logits (n,) of prepared images."""
        return self.head[2](self.features(x)).squeeze(1)
