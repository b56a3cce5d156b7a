"""The words of the figures in Chinese: a picture whose name ends in `.zh.png` has them.

A figure is drawn once, in English; before its Chinese twin is written, every label is looked up
here and gets a font that has its characters (see `dragoman.lens.pictures`). A label without its
Chinese is an error; one without a word of two letters, such as a number or a formula, stays.
"""

import re
from pathlib import Path

from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.text import Text

from dragoman.lens import pictures
from dragoman.lens.pictures import label

KEPT = {"RNN", "GRU", "LSTM", "GELU", "PE", "BLEU"}
"""Names that are the same in Chinese."""

LABELS = {
    # attention
    "weight": "权重",
    "score": "得分",
    r"temperature ([\d.]+)": r"温度 \1",
    "width of a head, d": "头的宽度 d",
    "standard deviation of the scores": "得分的标准差",
    r"q · k / sqrt\(d\)": "q · k / sqrt(d)",
    "largest weight": "最大的权重",
    "its gradient in the scores": "它对得分的梯度",
    "query": "查询",
    "key": "键",
    "full": "完全",
    "causal": "因果",
    r"linear \(causal\)": "线性（因果）",
    "sliding window, 6": "滑动窗口，6",
    "sliding window, 3 each way": "滑动窗口，前后各 3",
    "Longformer, 2 global": "Longformer，2 个全局位置",
    "strided, 5": "跨步，5",
    "fixed, 6, summary 2": "固定，6，汇总 2",
    "packed documents, causal": "拼接的文档，因果",
    "words back": "往回几个词",
    "steps between two words": "两个词之间的步数",
    "gradient of the last output": "最后一个输出的梯度",
    "recurrent": "循环网络",
    "attention": "注意力",
    "pad": "填充",
    "ours": "我们的",
    "mask read the wrong way": "掩码读反了",
    "no causal mask": "没有因果掩码",
    "padding not hidden": "没有遮住填充",
    "-inf where nothing is seen": "什么也看不到时用 -inf",
    r"not divided by sqrt\(d\)": "没有除以 sqrt(d)",
    # layers
    "activation": "激活函数",
    "its slope": "它的斜率",
    r"ReLU \(the paper\)": "ReLU（论文）",
    r"GELU by tanh \(GPT-2\)": "用 tanh 的 GELU（GPT-2）",
    r"SiLU \(Llama\)": "SiLU（Llama）",
    "layer": "层",
    r"(\d+) layers": r"\1 层",
    "norm of the gradient": "梯度的范数",
    "size of the stream": "残差流的大小",
    r"post-norm \(the paper\)": "后置归一化（论文）",
    "pre-norm": "前置归一化",
    "DeepNorm": "DeepNorm",
    "tokens decoded": "已解码的词元",
    "KiB for each layer and sentence": "每层每句的 KiB",
    r"full: (\d+) key-value heads": r"完全：\1 个键值头",
    r"grouped: (\d+) key-value heads": r"分组：\1 个键值头",
    "one key-value head": "一个键值头",
    r"window of (\d+)": r"窗口 \1",
    "linear": "线性",
    "full, in use": "完全，已用部分",
    # positions
    "position": "位置",
    "position m": "位置 m",
    "dimension": "维",
    r"PE\(pos, column\)": "PE(位置, 列)",
    r"column \(2i: sine, 2i \+ 1: cosine\)": "列（2i：正弦，2i + 1：余弦）",
    "four of its columns": "其中四列",
    r"column (\d+) \(i = (\d+)\)": r"第 \1 列（i = \2）",
    "dot product": "点积",
    "distance": "距离",
    r"dot product of PE\(p\) and PE\(q\)": "PE(p) 与 PE(q) 的点积",
    r"distance of PE\(p\) and PE\(q\)": "PE(p) 与 PE(q) 的距离",
    r"row p = (\d+)": r"p = \1 的一行",
    "angle of a pair, in degrees": "一对分量的角度（度）",
    "pair i": "第 i 对",
    r"pair (\d+)": r"第 \1 对",
    "sinusoidal: added to the embedding": "正弦：加到词嵌入上",
    "rotary: a vector with itself, turned apart": "旋转：一个向量与转开后的自己",
    r"base ([\d,]+)": r"底数 \1",
    r"relative bias \(T5\): distances that share a number": "相对偏置（T5）：共用一个数的距离",
    "key minus query": "键减查询",
    "bucket": "桶",
    "ALiBi: taken from the score": "ALiBi：从得分中减去",
    "positions back": "往回几个位置",
    "bias": "偏置",
    r"head (\d+) of (\d+)": r"头 \1（共 \2 个）",
    # costs
    "length": "长度",
    "ms": "毫秒",
    "MiB beyond the inputs": "输入之外的 MiB",
    "reference": "参考实现",
    "Longformer": "Longformer",
    "strided": "跨步",
    "fixed": "固定",
    "copies": "复制",
    "shuffled": "打乱",
    "in French": "译成法语",
    "cut": "截断",
    "misspelt": "拼错",
    "tags": "多余标签",
    "duplicates": "重复",
    "case lost": "大小写丢失",
    "spoiled pairs": "弄坏的句对",
    "other pairs": "其他句对",
    "% removed": "删除的 %",
    "spoiled": "弄坏的语料",
    "cleaned": "清洗后",
    "never spoiled": "未弄坏",
    # scaling
    r"a curve for each size; floor E = ([\d.]+)": r"每种大小一条曲线；下限 E = \1",
    "what a budget buys": "一份预算能换来什么",
    "tokens": "词元",
    "loss, nats per token": "损失（nats/词元）",
    r"operations of training \(FLOPs\)": "训练的运算量（FLOPs）",
    "the best size": "最佳大小",
    # heads
    "Which English word each Chinese piece looks at": "每个译词看了哪个源词",
    r"layer (\d+), head (\d+)": r"层 \1，头 \2",
    # training
    "step": "步",
    "learning rate": "学习率",
    "noam: the paper's rate": "noam：论文的学习率",
    r"D = (\d+), warm-up ([\d,]+)": r"D = \1，预热 \2",
    r"schedules with a peak of ([\d.]+)": r"峰值为 \1 的几种曲线",
    r"([a-z-]+), warm-up ([\d,]+)": r"\1，预热 \2",
    "probability of the right token": "正确词元的概率",
    "loss": "损失",
    r"eps = ([\d.]+)": r"eps = \1",
}
"""Each label as a regular expression, and its Chinese."""


def chinese(said: str) -> str:
    """The Chinese of a label. Raises `KeyError` for one that has none."""
    if said in KEPT or not re.search("[A-Za-z]{2}", re.sub(r"\$[^$]*\$", "", said)):
        return said
    for pattern, meant in LABELS.items():
        if found := re.fullmatch(pattern, said):
            return found.expand(meant)
    raise KeyError(f"docs/figures/chinese.py has no Chinese for {said!r}")


def chinese_name(name: str) -> str:
    """The file of a picture's Chinese twin."""
    return re.sub(r"(\.\w+)$", r".zh\1", name)


def save(figure: Figure, path: Path | str) -> Path:
    """Write a figure as a PNG; with Chinese labels if its name ends in `.zh.png`."""
    if Path(path).name.endswith(".zh.png"):
        for axes in figure.axes:
            for axis in (axes.xaxis, axes.yaxis):
                _translate_ticks(axis)
        for text in figure.findobj(Text):
            translate(text)
    return pictures.save(figure, path)


def _translate_ticks(axis: Axis) -> None:
    """Give the marks of an axis their Chinese, if any is a word."""
    ticks = axis.get_majorticklabels()
    meant = [chinese(tick.get_text()) for tick in ticks]
    if meant != [tick.get_text() for tick in ticks]:
        font = label("".join(meant))[1]
        font.set_size(ticks[0].get_fontsize())
        axis.set_ticklabels(meant, fontproperties=font)


def translate(text: Text) -> None:
    """Give a text its Chinese, and a font that has it."""
    meant = chinese(text.get_text())
    size = text.get_fontsize()
    text.set_text(meant)
    text.set_fontproperties(label(meant)[1])
    text.set_fontsize(size)
