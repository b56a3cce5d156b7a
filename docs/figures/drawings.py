"""Drawings of the paper's figures 1 and 2, and of what came before, as SVG: boxes are links.

Each leads to the page that explains it. They are our own; those of the paper show the same parts in
the same order. Labels are text, so they need no font
of ours. In a file whose name ends in `.zh.svg` they are Chinese, and links lead to Chinese pages.
"""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape, quoteattr

from dragoman.files.writing import replacing

CHINESE = {
    "Source": "源句",
    "Target so far": "已写出的译文",
    "Next token": "下一个词元",
    "Embedding": "词嵌入",
    "+ positions": "+ 位置",
    "Multi-head self-attention": "多头自注意力",
    "Masked self-attention": "带掩码的自注意力",
    "Cross-attention": "交叉注意力",
    "Feed-forward": "前馈网络",
    "Add & norm": "残差与归一化",
    "Linear": "线性层",
    "Softmax": "softmax",
    "Encoder × N": "编码器 × N",
    "Decoder × N": "解码器 × N",
    "keys, values": "键、值",
    "Scaled dot-product attention": "缩放点积注意力",
    "Multi-head attention": "多头注意力",
    "Q Kᵀ": "Q Kᵀ",
    "÷ √d": "÷ √d",
    "Mask": "掩码",
    "weights × V": "权重 × V",
    "Concatenate": "拼接",
    "H heads": "H 个头",
    "Q": "Q",
    "K": "K",
    "V": "V",
    "One vector": "一个向量",
    "Attention, 2014": "注意力（2014 年）",
    "two last states": "两端的最后状态",
    "mean of all states": "全部状态的加权平均",
    "GRU": "GRU",
    "the": "the",
    "third": "third",
    "of": "of",
    "May": "May",
    "月": "月",
    "日": "日",
    "Embedding + positions": "词嵌入 + 位置",
    "Linear, softmax": "线性层、softmax",
    "Encoder × 2": "编码器 × 2",
    "Decoder × 2": "解码器 × 2",
    "weights": "权重",
    "memory": "编码器的输出",
    "reads": "读入",
    "predicts": "预测",
}
"""The labels of the drawings."""

SOURCE = {"the": 1156, "cups": 520, "were": 1261, "broken": 430, "by": 441, "wang": 1240}
SOURCE |= {"fang": 611, ".": 7, "<eos>": 2}
TARGET = {"<bos>": 1, "杯": 351, "子": 210, "被": 534, "王": 429, "芳": 513, "打": 289, "破": 456}
TARGET |= {"了": 41, "。": 15, "<eos>": 2}
"""The tokens of a sentence of page 0 and of its translation, and their ids there."""

ORANGE, YELLOW, BLUE, GREEN, VIOLET, GREY = (
    "#ffe0c2",
    "#fff3b8",
    "#cfe6fb",
    "#d5f0d2",
    "#e6dcf7",
    "#eeeeee",
)
HIGH = 34
"""The height of a box."""


class Pen(NamedTuple):
    """What a drawing consists of so far, in one language."""

    parts: list[str]
    language: str

    def word(self, english: str) -> str:
        """A label in the language, as SVG has it; tokens and numbers are the same in both."""
        kept = english in SOURCE | TARGET or not any(map(str.isalpha, english))
        return escape(english if kept or self.language == "en" else CHINESE[english])

    def text(self, x: int, y: int, english: str, extra: str = "") -> None:
        """Write a label, its middle at x and its baseline at y."""
        self.parts.append(f'<text x="{x}" y="{y}"{extra}>{self.word(english)}</text>')

    def box(
        self, middle: int, y: int, english: str, page: str, colour: str, width: int = 190
    ) -> None:
        """Draw a box around a label that leads to a page of the walk."""
        folder = "../zh/walk" if self.language == "zh" else "../walk"
        self.parts.append(f"<a href={quoteattr(f'{folder}/{page}.md')}>")
        self.parts.append(
            f'<rect x="{middle - width // 2}" y="{y}" width="{width}" height="{HIGH}" rx="6" '
            f'fill="{colour}" stroke="#444"/>'
        )
        self.text(middle, y + HIGH // 2 + 5, english)
        self.parts.append("</a>")

    def frame(self, x: int, y: int, width: int, height: int, english: str) -> None:
        """Draw the frame around the parts of a layer, its name below."""
        self.parts.append(
            f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="12" fill="none" '
            'stroke="#888" stroke-dasharray="6 4"/>'
        )
        self.text(x + 4, y + height + 18, english, ' font-weight="bold" text-anchor="start"')

    def arrow(self, path: str) -> None:
        """Draw an arrow along a path."""
        self.parts.append(
            f'<path d="{path}" fill="none" stroke="#444" stroke-width="1.4" '
            'marker-end="url(#arrow-head)"/>'
        )

    def residual(self, middle: int, below: int, above: int, width: int = 190) -> None:
        """Draw the way around a sublayer: from below it to the right end of the norm above it."""
        right = middle + width // 2
        self.arrow(f"M {middle} {below} H {right + 22} V {above} H {right + 2}")


def transformer(pen: Pen) -> tuple[int, int]:
    """Draw figure 1, the encoder on the left and the decoder on the right; returns its size."""
    left, right = 150, 430
    pen.text(left, 712, "Source")
    pen.text(right, 712, "Target so far")
    for middle in (left, right):
        pen.arrow(f"M {middle} 694 V 682")
        pen.box(middle, 646, "Embedding", "07-embeddings", ORANGE)
        pen.arrow(f"M {middle} 646 V 624")
        pen.box(middle, 588, "+ positions", "08-positions", YELLOW)
    pen.frame(22, 326, 262, 232, "Encoder × N")
    pen.frame(302, 206, 262, 352, "Decoder × N")
    first = (("Multi-head self-attention", left), ("Masked self-attention", right))
    for english, middle in first:
        pen.arrow(f"M {middle} 588 V 546")
        page = "05-three-uses" if middle == right else "04-multi-head"
        pen.box(middle, 510, english, page, BLUE)
    sublayers = ((left, ("Feed-forward",)), (right, ("Cross-attention", "Feed-forward")))
    for middle, rest in sublayers:
        y = 510
        pen.residual(middle, 566, 475)
        for number in range(len(rest) + 1):
            pen.arrow(f"M {middle} {y} V {y - 16}")
            pen.box(middle, y - 52, "Add & norm", "02-stacks", YELLOW)
            if number < len(rest):
                is_cross = rest[number] == "Cross-attention"
                page, colour = ("05-three-uses", BLUE) if is_cross else ("06-feed-forward", GREEN)
                pen.arrow(f"M {middle} {y - 52} V {y - 84}")
                pen.box(middle, y - 120, rest[number], page, colour)
                pen.residual(middle, y - 66, y - 155)
            y -= 120
    pen.arrow(f"M {left} 338 V 304 H 293 V 407 H 333")
    pen.text(222, 297, "keys, values", ' font-size="12"')
    return _output(pen, right)


def _output(pen: Pen, right: int) -> tuple[int, int]:
    """Draw what stands above the decoder; returns the size of figure 1."""
    pen.arrow(f"M {right} 218 V 152")
    pen.box(right, 116, "Linear", "07-embeddings", VIOLET)
    pen.arrow(f"M {right} 116 V 94")
    pen.box(right, 58, "Softmax", "07-embeddings", GREEN)
    pen.arrow(f"M {right} 58 V 42")
    pen.box(right, 6, "Next token", "11-results", GREY)
    return 590, 726


def multi_head(pen: Pen) -> tuple[int, int]:
    """Draw figure 2, one attention on the left and many side by side on the right."""
    one, many = 140, 440
    pen.text(one, 24, "Scaled dot-product attention", ' font-weight="bold"')
    pen.text(many, 24, "Multi-head attention", ' font-weight="bold"')
    column = (
        ("weights × V", "03-scaled-dot-product", VIOLET),
        ("Softmax", "03-scaled-dot-product", GREEN),
        ("Mask", "05-three-uses", ORANGE),
        ("÷ √d", "03-scaled-dot-product", YELLOW),
        ("Q Kᵀ", "03-scaled-dot-product", VIOLET),
    )
    pen.arrow(f"M {one} 56 V 40")
    for number, (english, page, colour) in enumerate(column):
        y = 56 + 58 * number
        pen.box(one, y, english, page, colour, 130)
        if number:
            pen.arrow(f"M {one} {y} V {y - 22}")
    for x, english in ((one - 30, "Q"), (one + 30, "K"), (one + 100, "V")):
        pen.text(x, 364, english)
    pen.arrow(f"M {one - 30} 348 V 324")
    pen.arrow(f"M {one + 30} 348 V 324")
    pen.arrow(f"M {one + 100} 348 V 73 H {one + 67}")
    pen.arrow(f"M {many} 56 V 40")
    pen.box(many, 56, "Linear", "04-multi-head", GREY, 130)
    pen.arrow(f"M {many} 114 V 92")
    pen.box(many, 114, "Concatenate", "04-multi-head", YELLOW, 130)
    pen.arrow(f"M {many} 188 V 150")
    for shift in (16, 8, 0):
        pen.box(
            many + shift,
            188 - shift,
            "Scaled dot-product attention",
            "03-scaled-dot-product",
            VIOLET,
            236,
        )
    pen.text(many + 160, 198, "H heads", ' font-size="12"')
    for x, english in ((many - 90, "V"), (many, "K"), (many + 90, "Q")):
        pen.arrow(f"M {x} 272 V 224")
        for shift in (16, 8, 0):
            pen.box(x + shift, 272 - shift, "Linear", "04-multi-head", GREY, 66)
        pen.arrow(f"M {x} 348 V 308")
        pen.text(x, 364, english)
    return 640, 376


WORDS, WRITTEN = ("the", "third", "of", "May"), ("5", "月", "3", "日")
WEIGHTS = (1, 8, 1, 1)
"""The widths of the lines from the words, while the day is written."""


def one_vector(pen: Pen) -> tuple[int, int]:
    """Draw a decoder with one vector of the source, and one that looks at all of its states."""
    for left, title in ((20, "One vector"), (350, "Attention, 2014")):
        pen.text(left + 135, 24, title, ' font-weight="bold"')
        places = [left + 30 + 70 * number for number in range(4)]
        for x, word, character in zip(places, WORDS, WRITTEN, strict=True):
            pen.box(x, 262, "GRU", "00b-one-vector", ORANGE, 58)
            pen.text(x, 334, word)
            pen.arrow(f"M {x} 318 V 298")
            pen.box(x, 76, "GRU", "00b-one-vector", GREEN, 58)
            pen.arrow(f"M {x} 76 V 62")
            pen.text(x, 54, character)
        for x in places[1:]:
            pen.arrow(f"M {x - 41} 274 H {x - 29}")
            pen.arrow(f"M {x - 29} 284 H {x - 41}")
            pen.arrow(f"M {x - 41} 93 H {x - 29}")
    ends = "M {} 262 C {} 220 {} 230 {} 206"
    for x, to in ((50, 130), (260, 180)):
        pen.arrow(ends.format(x, x, to, to))
    pen.box(155, 170, "two last states", "00b-one-vector", GREY, 150)
    pen.arrow("M 155 170 C 155 134 50 150 50 112")
    return _weighed(pen, [350 + 30 + 70 * number for number in range(4)])


def _weighed(pen: Pen, places: list[int]) -> tuple[int, int]:
    """Draw the lines from all states to the third token; returns the size of the drawing."""
    for x, width in zip(places, WEIGHTS, strict=True):
        pen.parts.append(
            f'<path d="M {x} 262 C {x} 226 485 236 485 204" fill="none" stroke="#3778b8" '
            f'stroke-width="{width}"/>'
        )
    pen.box(485, 170, "mean of all states", "00b-one-vector", BLUE, 170)
    pen.arrow(f"M 485 170 C 485 140 {places[2]} 146 {places[2]} 112")
    return 640, 350


def one_sentence(pen: Pen) -> tuple[int, int]:
    """Draw a sentence on its way through the model of page 0, with its ids and all shapes."""
    _tokens(pen, 20, list(SOURCE), list(SOURCE.values()))
    _stage(pen, 102, "Embedding + positions", "07-embeddings", ORANGE, "(1, 9) → (1, 9, 128)")
    _stage(pen, 168, "Encoder × 2", "02-stacks", BLUE, "(1, 9, 128) → (1, 9, 128)")
    pen.arrow("M 380 185 H 668 V 449 H 384")
    for x, y, label in (
        (525, 178, "memory"),
        (525, 203, "(1, 9, 128)"),
        (90, 208, "weights"),
        (90, 224, "(1, 4, 9, 9)"),
        (90, 472, "weights"),
        (90, 488, "(1, 4, 10, 10), (1, 4, 10, 9)"),
    ):
        pen.text(x, y, label, ' font-size="12"')
    read, predicted = list(TARGET)[:-1], list(TARGET)[1:]
    _tokens(pen, 284, read, [TARGET[token] for token in read])
    pen.text(26, 276, "reads", ' font-weight="bold" text-anchor="start"')
    _stage(pen, 366, "Embedding + positions", "08-positions", ORANGE, "(1, 10) → (1, 10, 128)")
    _stage(pen, 432, "Decoder × 2", "05-three-uses", BLUE, "(1, 10, 128) → (1, 10, 128)")
    _stage(pen, 498, "Linear, softmax", "07-embeddings", VIOLET, "(1, 10, 128) → (1, 10, 656)")
    _tokens(pen, 568, predicted, [TARGET[token] for token in predicted])
    pen.text(26, 560, "predicts", ' font-weight="bold" text-anchor="start"')
    return 680, 636


def _tokens(pen: Pen, y: int, tokens: list[str], ids: list[int]) -> None:
    """Draw a row of tokens with their ids below."""
    for number, (token, own) in enumerate(zip(tokens, ids, strict=True)):
        x = 52 + 62 * number
        pen.box(x, y, token, "00-one-file", GREY, 56)
        pen.text(x, y + 52, str(own), ' font-size="12"')


def _stage(pen: Pen, y: int, english: str, page: str, colour: str, shapes: str) -> None:
    """Draw a part of the model with the shapes of what goes in and comes out, and its arrow."""
    pen.arrow(f"M 280 {y - 22} V {y - 2}")
    pen.box(280, y, english, page, colour, 200)
    pen.text(90, y + 22, shapes, ' font-size="12"')


def draw(path: Path | str, plan: Callable[[Pen], tuple[int, int]]) -> Path:
    """Write a drawing, whole or not at all; the same code gives the same bytes."""
    target = Path(path)
    pen = Pen([], "zh" if target.name.endswith(".zh.svg") else "en")
    width, height = plan(pen)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" font-family="system-ui, sans-serif" font-size="14" '
        'text-anchor="middle" fill="#222">'
    )
    marker = (
        '<defs><marker id="arrow-head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" '
        'markerHeight="8" orient="auto"><path d="M 0 0 L 8 4 L 0 8 z" fill="#444"/></marker></defs>'
    )
    ground = f'<rect width="{width}" height="{height}" rx="8" fill="#fff"/>'
    with replacing(target, "drawing") as part:
        lines = [head, marker, ground, *pen.parts, "</svg>"]
        part.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return target


def draw_transformer(path: Path | str) -> Path:
    """Figure 1 of the paper: the encoder and the decoder, and what a layer of each consists of."""
    return draw(path, transformer)


def draw_multi_head(path: Path | str) -> Path:
    """Figure 2 of the paper: scaled dot-product attention, and several of it side by side."""
    return draw(path, multi_head)


def draw_one_vector(path: Path | str) -> Path:
    """What came before: one vector between two recurrent networks, and attention between them."""
    return draw(path, one_vector)


def draw_one_sentence(path: Path | str) -> Path:
    """A sentence of page 0 and its translation, with their ids, and the shapes between them."""
    return draw(path, one_sentence)
