"""Pieces of the standalone program: what differs between tasks and between remedies.

* `TASKS`: word → the function that draws sequences and says which guesses count, and how many symbols there are;
* `LESSONS`: the tasks whose function takes the step too;
* `PIECES`: word → `Piece`, what a remedy adds to the model and to a step.

It is text, not code of this project: the program must stand alone, and tests run it against the engine.
"""

from dataclasses import dataclass
from textwrap import indent
from typing import Final, get_args

from qkdemo.attention.norms import NORMS, LearnedWord, NormaliserWord, program_lines
from qkdemo.training.sentences import KINDS, OTHERS, STORIES
from qkdemo.training.settings import RemedyWord
from qkdemo.training.tasks import LESSON_STEPS, OTHER_WORDS, TaskWord


@dataclass(frozen=True)
class Piece:
    """Lines of a remedy; empty where it does nothing. Each stands where its name says."""

    parameters: tuple[str, ...] = ()  # in Attention.__init__
    logits: str = ""  # of q and k, the branch of Attention.forward that makes s
    rates: str = ""  # shares of the learning rate, before the step
    after: str = ""  # after the step


_LOGITS: Final = "s = q @ k.mT / math.sqrt(WIDTH)"
_COPY: Final = """def draw(rng, batch, length):
    half = (length - 1) // 2 + 1
    symbols = rng.integers(16, size=(batch, half))
    counted = np.broadcast_to(np.arange(length) >= half, (batch, length))
    return np.tile(symbols, 2)[:, :length], counted
"""

_TOLD: Final = ",\n".join(f"    ({story.opening!r}, {story.parts!r})" for story in STORIES)
_SENTENCES: Final = f"""KINDS = {KINDS!r}
OTHERS = {OTHERS!r}
STORIES = [  # an opening, then parts; letters stand for words of their kind
{_TOLD},
]
WORDS = [word for words in KINDS.values() for word in words] + list(OTHERS)
SYMBOLS, LETTERS = len(WORDS), [letter for kind in KINDS for letter in kind]
NUMBERS = {{name: at for at, name in enumerate(WORDS + LETTERS)}}
TOLD = [[part.split() for part in (opening, *parts)] for opening, parts in STORIES]
SIZE = (len(TOLD), max(map(len, TOLD)), max(len(part) for story in TOLD for part in story))
TEMPLATES = np.full(SIZE, len(NUMBERS))
for at, story in enumerate(TOLD):
    for row, part in zip(TEMPLATES[at], story):
        row[: len(part)] = [NUMBERS[name] for name in part]


def draw(rng, batch, length, step):  # the first lesson is the first story alone
    size = (batch, 1 - -length // min(len(part) for story in TOLD for part in story[1:]))
    story = rng.integers(1 if step <= {LESSON_STEPS} else len(TOLD), size=(batch, 1))
    part = 1 + rng.integers(np.broadcast_to(np.array([len(parts) - 1 for parts in TOLD])[story], size))
    part[:, 0], letters = 0, []
    for kind, known in KINDS.items():
        order = rng.permuted(np.broadcast_to(np.arange(len(known)), (*size, len(known))), axis=-1)
        letters.append(NUMBERS[known[0]] + order[..., : len(kind)])
    letters, opened = np.concatenate(letters, axis=-1), np.array([bool(opening) for opening, _ in STORIES])[story]
    letters = np.where(opened[..., None], letters[:, :1], letters)
    words = np.broadcast_to(np.arange(SYMBOLS), (*size, SYMBOLS))
    meant = np.concatenate([words, letters, np.full((*size, 1), len(NUMBERS))], axis=-1)
    text = np.take_along_axis(meant, TEMPLATES[story, part], axis=-1).reshape(batch, -1)
    kept = np.argsort(text == len(NUMBERS), axis=-1, kind="stable")[:, :length]
    text = np.take_along_axis(text, kept, axis=-1)
    verb = np.zeros(text.shape, dtype=bool)
    verb[:, 2:] = text[:, :-2] == NUMBERS["near"]
    counted = verb | (text == NUMBERS["?"]) | (rng.random(text.shape) < {OTHER_WORDS})
    counted[:, 0] |= ~counted[:, :-1].any(axis=1)
    return text, counted
"""

LESSONS: Final[frozenset[TaskWord]] = frozenset({"words"})
TASKS: Final[dict[TaskWord, str]] = {
    "words": _SENTENCES,
    "copy": "SYMBOLS = 16\n\n\n" + _COPY,
    "noisy_copy": "SYMBOLS = 16\n\n\n"
    + _COPY.replace("def draw", "def copy")
    + """

def draw(rng, batch, length):  # one symbol in ten of the second half is replaced by another
    symbols, counted = copy(rng, batch, length)
    shift = rng.integers(1, 16, size=symbols.shape)
    hit = (rng.random(symbols.shape) < 0.1) & (np.arange(length) >= (length - 1) // 2 + 1)
    return np.where(hit, (symbols + shift) % 16, symbols), counted
""",
    "induction": """SYMBOLS = 16


def draw(rng, batch, length):  # every sequence has a period of its own
    low, high = (length - 1) // 4, (length - 1) // 2
    period = rng.integers(low, high + 1, size=(batch, 1))
    symbols = rng.integers(16, size=(batch, high))
    at = np.arange(length)[None, :]
    return np.take_along_axis(symbols, at % period, axis=1), at >= period
""",
    "recall": """SYMBOLS = 32


def draw(rng, batch, length):  # keys with their values, then the keys in another order, each followed by its value
    pairs = (length - 1) // 4
    keys = rng.permuted(np.tile(np.arange(16), (batch, 1)), axis=1)[:, :pairs]
    values = rng.integers(16, 32, size=(batch, pairs))
    order = rng.permuted(np.tile(np.arange(pairs), (batch, 1)), axis=1)
    order = np.concatenate([order, order[:, :1]], axis=1)
    asked = [np.take_along_axis(x, order, axis=1) for x in (keys, values)]
    told, asked = (np.stack(x, axis=-1).reshape(batch, -1) for x in ([keys, values], asked))
    at = np.arange(length)
    counted = np.broadcast_to((at >= 2 * pairs) & (at % 2 == 0), (batch, length))
    return np.concatenate([told, asked], axis=1)[:, :length], counted
""",
    "addition": """SYMBOLS = 23


def draw(rng, batch, length):  # a b c with c = a + b modulo 23
    a, b = rng.integers(23, size=(2, batch, -(-length // 3)))
    sums = np.stack([a, b, (a + b) % 23], axis=-1).reshape(batch, -1)
    return sums[:, :length], np.broadcast_to(np.arange(length) % 3 == 1, (batch, length))
""",
    "text": """from pydoc_data.topics import topics  # Python's own help texts, of the version that runs this

text = "\\n".join(topics[name] for name in sorted(topics))
text = "".join(character if character.isascii() else "?" for character in text)
letters, TEXT = np.unique(np.frombuffer(text.encode(), dtype=np.uint8), return_inverse=True)
SYMBOLS = len(letters)


def draw(rng, batch, length):
    start = rng.integers(len(TEXT) - length, size=(batch, 1))
    return TEXT[start + np.arange(length)].astype(np.int64), np.ones((batch, length), dtype=bool)
""",
}

_LEARNT: Final[dict[LearnedWord, str]] = {
    "gain": "self.g = nn.Parameter(torch.full((HEADS, 1, 1), math.log2(KEYS**2 - KEYS)))",
    "gamma": """self.gamma_q = nn.Parameter(torch.full((WIDTH,), start['gamma']))
self.gamma_k = nn.Parameter(torch.full((WIDTH,), start['gamma']))""",
    "alpha": "self.alpha_q, self.alpha_k = (nn.Parameter(torch.tensor(start['alpha'])) for _ in 'qk')",
}


def norm_function(word: NormaliserWord) -> str:
    """The function of that name which a norm's logits call."""
    lines = indent(program_lines(NORMS[word], "alpha"), " " * 4)
    return f"\ndef {word}(x{', alpha' if 'alpha' in NORMS[word].learns else ''}):\n{lines}\n    return x\n\n"


def _of_norm(word: NormaliserWord) -> Piece:
    learns = NORMS[word].learns
    q, k = (f"{word}({x}{f', self.alpha_{x}' if 'alpha' in learns else ''})" for x in "qk")
    if "gamma" in learns:
        q, k = f"self.gamma_q * {q}", f"self.gamma_k * {k}"
    product = "self.g * (q @ k.mT)" if "gain" in learns else "q @ k.mT / math.sqrt(WIDTH)"
    return Piece(parameters=tuple(_LEARNT[dial] for dial in learns), logits=f"q, k = {q}, {k}\ns = {product}")


PIECES: Final[dict[RemedyWord, Piece]] = {
    "none": Piece(logits=_LOGITS),
    **{word: _of_norm(word) for word in get_args(NormaliserWord)},
    "cosine": Piece(
        parameters=("self.log_scale = nn.Parameter(torch.full((HEADS, 1, 1), -math.log(start['temperature'])))",),
        logits="""cosine = F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).mT
s = cosine * self.log_scale.clamp(max=math.log(100)).exp()""",
    ),
    "softcap": Piece(logits="s = dials['softcap'] * torch.tanh(q @ k.mT / math.sqrt(WIDTH) / dials['softcap'])"),
    "sigma_reparam": Piece(logits=_LOGITS),
    "qk_clip": Piece(
        logits=_LOGITS,
        after="""for block in model.blocks:
    clip(block.attention, dials["clip_threshold"])""",
    ),
    "qk_lr": Piece(
        logits=_LOGITS,
        rates="""for block in model.blocks:
    shares[block.attention.q.weight] = shares[block.attention.k.weight] = dials["qk_lr_factor"]""",
    ),
    "quack": Piece(
        logits=_LOGITS,
        rates="""for block in model.blocks:
    q, k = block.attention.q.weight, block.attention.k.weight
    shares[q], shares[k] = rate_by_norm(k, HEADS), rate_by_norm(q, KEY_HEADS)""",
    ),
    "ngpt": Piece(
        parameters=("self.s_qk = nn.Parameter(torch.full((HEADS, 1, WIDTH), D**-0.5))  # stands for 1",),
        logits=f"""gain = self.s_qk * math.sqrt(D)
q, k = (F.rms_norm(x, (WIDTH,), eps={NORMS["rms"].epsilon:g}) * gain for x in (q, k))
s = q @ k.mT / math.sqrt(WIDTH)""",
        after="onto_sphere(model)",
    ),
}

CLIP: Final = '''
@torch.no_grad()
def clip(attention, threshold):
    """QK-clip: heads whose largest logit of this step exceeded the threshold are scaled back to it."""
    for head, largest in enumerate(attention.logits.amax((0, 2, 3)).tolist()):
        if largest > threshold and math.isfinite(largest):
            own, share = slice(head * WIDTH, (head + 1) * WIDTH), threshold / largest
            shared = KEY_HEADS < HEADS  # then other heads look at the key head too, and it stays
            attention.q.weight[own] *= share if shared else math.sqrt(share)
            if not shared:
                attention.k.weight[own] *= math.sqrt(share)
'''

BY_NORM: Final = '''
def rate_by_norm(other, heads):
    """QuacK: the share of the rate of W_q (or W_k), 1/norm of a head of the other, 1 for a fresh model; row by row."""
    fresh = math.sqrt(2 / (D + len(other))) * math.sqrt(D * WIDTH)
    squares = other.detach().view(-1, WIDTH, D).square().sum((1, 2))
    squares = squares.mean(0, keepdim=True) if len(squares) > heads else squares
    return (fresh / squares.sqrt().clamp_min(1e-12)).expand(heads).repeat_interleave(WIDTH)[:, None]
'''

SPHERE: Final = '''
@torch.no_grad()
def onto_sphere(model):
    """nGPT: every matrix at unit length along the hidden state's dimension."""
    rows = [model.embedding, model.position, model.head.weight]
    columns = []
    for block in model.blocks:
        rows += [block.attention.q.weight, block.attention.k.weight, block.attention.v.weight, block.up.weight]
        columns += [block.attention.out.weight, block.down.weight]
    for matrices, dim in ((rows, 1), (columns, 0)):
        for matrix in matrices:
            matrix.copy_(F.normalize(matrix, dim=dim))


def towards(x, block, alpha):
    """From x a share of the way to the block's direction, and back to unit length."""
    share = alpha.abs() * 0.05 * math.sqrt(D)
    return F.normalize(x + share * (F.normalize(block, dim=-1) - x), dim=-1)

'''

SIGMA: Final = '''
class Matrix(nn.Linear):
    """x W, without a bias; under σReparam x (γ W / σ), with σ from one step of the power iteration."""

    def __init__(self, inputs, outputs):
        super().__init__(inputs, outputs, bias=False)
        self.gain = nn.Parameter(torch.ones(()))

    def forward(self, x, dials):
        self.used = self.weight.detach()
        if dials["variant"] != "sigma_reparam":
            return super().forward(x)
        with torch.no_grad():
            self.u = F.normalize(self.weight @ F.normalize(self.weight.T @ self.u, dim=0), dim=0)
            left = F.normalize(self.weight.T @ self.u, dim=0)
        sigma = left @ (self.weight.T @ self.u)
        used = self.weight * (self.gain / sigma)
        self.used = used.detach()
        return F.linear(x, used)

'''
