"""A small convolutional network for 8x8 digits, and the file it is kept in."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

SIDE = 8
PIXELS = SIDE * SIDE
LABELS = 10
BRIGHTEST = 16.0
FILE = "model.pt"


@dataclass(frozen=True)
class Config:
    channels: int = 16


class DigitsNet(nn.Module):
    """Two normalised convolutions and a linear layer over pixels as the data has them, 0 to 16.

    Nothing in it depends on the batch, and the last layer starts at zero: it learns alike from
    global batches of 32 to 512.
    """

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config
        features = 2 * config.channels * (SIDE // 2) ** 2
        head = nn.Linear(features, LABELS)
        nn.init.zeros_(head.weight)
        nn.init.zeros_(head.bias)
        self.layers = nn.Sequential(
            nn.Conv2d(1, config.channels, kernel_size=3, padding=1),
            nn.GroupNorm(1, config.channels),
            nn.ReLU(),
            nn.Conv2d(config.channels, 2 * config.channels, kernel_size=3, padding=1),
            nn.GroupNorm(1, 2 * config.channels),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.LayerNorm(features),
            head,
        )

    def forward(self, pixels: Tensor) -> Tensor:
        """Logits, one row of ten for each row of 64 pixels."""
        images = pixels.reshape(-1, 1, SIDE, SIDE) / (BRIGHTEST / 2) - 1
        logits: Tensor = self.layers(images)
        return logits


def save(model: DigitsNet, directory: Path) -> None:
    state = {name: tensor.cpu() for name, tensor in model.state_dict().items()}
    torch.save({"config": asdict(model.config), "state_dict": state}, directory / FILE)


def load(directory: Path) -> DigitsNet:
    """The network in a checkpoint or model folder, on the CPU, ready to predict."""
    if not (directory / FILE).is_file():
        found = sorted(path.name for path in directory.glob("*"))
        raise FileNotFoundError(f"no {FILE} in {directory}, which holds {found}")
    saved = torch.load(directory / FILE, map_location="cpu", weights_only=True)
    model = DigitsNet(Config(**saved["config"]))
    model.load_state_dict(saved["state_dict"])
    return model.eval()


def quality(model: nn.Module, pixels: Tensor, labels: Tensor) -> dict[str, float]:
    """Accuracy, and mean cross-entropy in nats."""
    model.eval()
    with torch.inference_mode():
        logits: Tensor = model(pixels)
        loss = nn.functional.cross_entropy(logits, labels)
        accuracy = (logits.argmax(dim=1) == labels).double().mean()
    model.train()
    return {"accuracy": accuracy.item(), "loss": loss.item()}


def right(model: nn.Module, pixels: Tensor, labels: Tensor) -> Tensor:
    """Of each image, 1.0 if its digit is recognised, else 0.0."""
    model.eval()
    with torch.inference_mode():
        logits: Tensor = model(pixels)
    return (logits.argmax(dim=1) == labels).double()
