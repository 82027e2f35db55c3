"""The standalone PyTorch program that trains the runs of a plan again, with nothing of this project in it.

* `program_of(plan)`: one file: a plain nn.Module and torch.optim.AdamW; it prints every step as CSV;
* `sweep_program(plans)`: the same for many runs, of which it prints the final loss alone.

It draws the same first weights and batches, and does the same arithmetic in another order. While training is calm and
logits are small, every loss agrees with the engine's in float32 to 1e-3 over the first 20 steps (on small models to
1e-4), which tests check for every remedy; not always in the largest models, nor at β₁ = 0, where AdamW divides a
gradient of rounding noise by its own size. Later, differences in the last bit of float32 grow by themselves: changing
the first weights by one part in 10⁷ changes the engine's own run as much. Far from the limit of what trains, a run then
ends alike, though not digit by digit; near that limit rounding decides, and one that the engine solves the program may
solve partly or not at all.
"""

from collections.abc import Sequence
from textwrap import indent
from typing import Final, TypeAlias, get_args

from qkdemo.attention.norms import NormaliserWord, norms_with
from qkdemo.dials import Value
from qkdemo.runs.plan import Plan
from qkdemo.runs.program_parts import BY_NORM, CLIP, LESSONS, PIECES, SIGMA, SPHERE, TASKS, norm_function
from qkdemo.runs.program_text import (
    BLOCK,
    FINAL,
    IN_BFLOAT16,
    MODEL,
    OUTPUTS,
    SCALED,
    SPHERE_BLOCK,
    SPHERE_MODEL,
    SPHERE_PARAMETERS,
    TELEMETRY,
    TEMPLATE,
    VECTORS,
)
from qkdemo.training.network.parameters import shape_of
from qkdemo.training.settings import RemedyWord, Settings

TOLERANCE: Final = 1e-3  # of a loss, in nats, over the first steps
AGREES: Final = 20  # steps

_ALWAYS: Final = ("variant", "seed", "schedule", "learning_rate", "warmup", "steps", "weight_decay")
_OF_REMEDY: Final[dict[RemedyWord, tuple[str, ...]]] = {
    "softcap": ("softcap",),
    "qk_clip": ("clip_threshold",),
    "qk_lr": ("qk_lr_factor",),
}
_AT_THE_START: Final[dict[str, frozenset[RemedyWord]]] = {
    "gamma": frozenset(norms_with("gamma")),
    "alpha": frozenset(norms_with("alpha")),
    "temperature": frozenset(("cosine",)),
}
Course: TypeAlias = Sequence[tuple[int, Settings]]  # after which step, with which dials


def program_of(plan: Plan) -> str:
    """The program for every run of `plan`, forks included."""
    courses = courses_of(plan)
    return _program(courses, plan.steps, TELEMETRY)


def sweep_program(plans: Sequence[Plan]) -> str:
    """The program for all runs of plans without forks and of one length."""
    courses = [course for plan in plans for course in courses_of(plan)]
    return _program(courses, plans[0].steps, FINAL)


def courses_of(plan: Plan) -> list[Course]:
    """What each run of the last leg went through from the beginning, its forks included."""
    courses: list[Course] = []
    for row in range(len(plan.legs[-1].runs)):
        course, at = list[tuple[int, Settings]](), row
        for leg in reversed(plan.legs):
            course.insert(0, (leg.after, leg.runs[at]))
            at = leg.rows[at]
        kept = [entry for place, entry in enumerate(course) if place == 0 or entry[1] != course[place - 1][1]]
        courses.append(kept)
    return courses


def _program(courses: Sequence[Course], steps: int, ending: str) -> str:
    first = courses[0][0][1]
    shape = shape_of(first)
    words = list(dict.fromkeys(run.variant for course in courses for _, run in course))
    sizes = {
        "LAYERS": shape.n_layers,
        "HEADS": shape.n_heads,
        "KEY_HEADS": shape.n_kv_heads,
        "WIDTH": shape.d_head,
        "KEYS": shape.n_keys,
        "BATCH": first.batch,
        "QK_START": first.qk_start,
        "BETA1": first.beta1,
        "BETA2": first.beta2,
        "CLIP": first.grad_clip,
        "Z_LOSS": first.z_loss,
        "STEPS": steps,
        "DEVICE": f'"{first.device}"',
    }
    sphere, sigma = "ngpt" in words, "sigma_reparam" in words
    starts = [name for name, users in _AT_THE_START.items() if users & set(words)]
    return TEMPLATE.format(
        title=f"{len(courses)} runs of the task {first.task}: {', '.join(words)}",
        tolerance=f"{TOLERANCE:g}",
        agrees=AGREES,
        sizes="\n".join(f"{name} = {value}" for name, value in sizes.items()),
        runs="\n".join(
            f"    [{', '.join(_entry(after, run, starts) for after, run in course)}]," for course in courses
        ),
        task=TASKS[first.task].rstrip(),
        lesson=", step" if first.task in LESSONS else "",
        sigma=SIGMA if sigma else "",
        sphere_functions=SPHERE if sphere else "",
        norm_functions="".join(norm_function(word) for word in get_args(NormaliserWord) if word in words),
        **_pieces(words, sphere=sphere, sigma=sigma),
        clip=CLIP if "qk_clip" in words else "",
        by_norm=BY_NORM if "quack" in words else "",
        outputs=IN_BFLOAT16 if first.forward_format == "bfloat16" else OUTPUTS,
        ending=ending.rstrip(),
    )


def _pieces(words: Sequence[RemedyWord], *, sphere: bool, sigma: bool) -> dict[str, str]:
    """What the remedies put into the model and into a step."""
    dials = ", dials" if sigma else ""
    matrix = "Matrix({})" if sigma else "nn.Linear({}, bias=False)"
    own = list(dict.fromkeys(text for word in words for text in PIECES[word].parameters))
    forms: dict[str, list[RemedyWord]] = {}
    for word in words:
        forms.setdefault(PIECES[word].logits, []).append(word)
    return {
        "q": matrix.format("D, HEADS * WIDTH"),
        "k": matrix.format("D, KEY_HEADS * WIDTH"),
        "square": matrix.format("D, D"),
        "up": matrix.format("D, 2 * D"),
        "down": matrix.format("2 * D, D"),
        "dials": dials,
        "used": "used" if sigma else "weight",
        "own": indent("\n".join(own) + "\n" if own else "", " " * 8),
        "logits": indent(_branches([(found, lines) for lines, found in forms.items()]), " " * 8),
        "sphere_parameters": SPHERE_PARAMETERS if sphere else "",
        "sphere_scale": "        self.s_logits = nn.Parameter(torch.full((SYMBOLS,), D**-0.5))\n" if sphere else "",
        "block": (SPHERE_BLOCK if sphere else BLOCK).replace("DIALS", dials),
        "model": SPHERE_MODEL if sphere else MODEL,
        "vectors": VECTORS if sigma else "",
        "sphere_start": '    if start["variant"] == "ngpt":\n        onto_sphere(model)\n' if sphere else "",
        "shares": _step_branches(words, "rates"),
        "after": _step_branches(words, "after"),
        "scaled": SCALED if any(PIECES[word].rates for word in words) else "",
        "before": "        before = {p: p.detach().clone() for p in shares}\n"
        if any(PIECES[word].rates for word in words)
        else "",
    }


def _branches(forms: Sequence[tuple[Sequence[RemedyWord], str]]) -> str:
    """`if` the run's variant is one of these: these lines."""
    if len(forms) == 1:
        return forms[0][1]
    parts = []
    for at, (words, lines) in enumerate(forms):
        test = f'dials["variant"] == "{words[0]}"' if len(words) == 1 else f'dials["variant"] in {tuple(words)}'
        head = "else:" if at == len(forms) - 1 else f"{'if' if at == 0 else 'elif'} {test}:"
        parts.append(f"{head}\n{indent(lines, '    ')}")
    return "\n".join(parts)


def _step_branches(words: Sequence[RemedyWord], place: str) -> str:
    lines = ["        shares = {}  # of the learning rate; 1 where none is named"] if place == "rates" else []
    found = [(word, getattr(PIECES[word], place)) for word in words if getattr(PIECES[word], place)]
    for word, text in found:
        lines += [f'        if dials["variant"] == "{word}":', indent(text, " " * 12)]
    return "\n".join(lines) + "\n" if found else ""


def _entry(after: int, run: Settings, starts: Sequence[str]) -> str:
    names = (*_ALWAYS, *starts, *_OF_REMEDY.get(run.variant, ()))
    values: dict[str, Value] = {name: getattr(run, name) for name in names}
    return f"({after}, dict({', '.join(f'{name}={value!r}' for name, value in values.items())}))"
