"""Drawing of an SVG picture as a PNG, without a browser and with a font of its own.

What is drawn does not depend on the fonts that a machine has; many containers have none.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from orchestration.pipeline.showing.drawing import FONTS

MODULES: Final = {"resvg_py": "pictures", "font_manrope": "pictures"}
"""Modules that it imports, by the extra that installs them."""
_SCALE: Final = 2
"""Dots by pixel of the SVG, so that it is sharp on today's screens."""


def png(svg: str) -> bytes:
    """Return the bytes of a PNG, on white and twice as large as the SVG says."""
    import font_manrope
    import resvg_py

    fonts = Path(font_manrope.__file__).parent / "files"
    return resvg_py.svg_to_bytes(
        svg_string=svg.replace(FONTS, "Manrope"),
        font_files=[str(fonts / "Manrope-Regular.ttf"), str(fonts / "Manrope-SemiBold.ttf")],
        skip_system_fonts=True,
        background="#ffffff",
        zoom=_SCALE,
    )
