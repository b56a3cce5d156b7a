"""Translation, as others see it."""

from dragoman.tasks.task import Task
from dragoman.tasks.translate.evaluation import evaluate_translator
from dragoman.tasks.translate.job import assemble
from dragoman.tasks.translate.recipe import TranslateRecipe
from dragoman.tasks.translate.translator import Translator
from dragoman.tasks.translate.work import WORKLOAD

__all__ = ["TASK"]

TASK = Task(
    recipe=TranslateRecipe,
    assemble=assemble,
    kind="encoder-decoder",
    does="translates (dragoman translate)",
    workload=WORKLOAD,
    use="dragoman translate {folder} < FILE",
    load=Translator.of,
    evaluate=evaluate_translator,
    measured_on=("src", "ref"),
)
