"""A language model of characters, trained here and now on pages of Python's manual: one character in, scores out.

penstock compile 'examples/char_lm.py:model#blocks' --quantize w8a8 -o out/char_lm
python out/char_lm/*.zip --generate 'The value of ' --tokens 60

It goes on with text in the manner of these pages. `#blocks`: one block is built as hardware, and the runtime runs it
for every layer with that layer's weights. Keys and values are buffers, so they stay with the accelerator from call to
call. Embedding, last norm and scores are the host's.
"""

from __future__ import annotations

from pydoc_data.topics import topics
from typing import Any

import torch
from torch import nn

WIDTH, HEADS, LAYERS, PLACES = 32, 2, 2, 96
STEPS, BATCH, SPAN = 800, 12, 48
PAGES = ("assignment", "class", "compound", "exceptions", "for", "function", "import", "naming", "numbers", "with")
TEXT = " ".join(" ".join(topics[page] for page in PAGES).encode("ascii", "ignore").decode().split())
LEARNT = len(TEXT) * 9 // 10
CHARACTERS = "".join(sorted(set(TEXT)))


class Block(nn.Module):
    """Attention over all characters before, then two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.q, self.k, self.v, self.o = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.keys: torch.Tensor
        self.values: torch.Tensor
        self.register_buffer("keys", torch.zeros(PLACES, WIDTH))
        self.register_buffer("values", torch.zeros(PLACES, WIDTH))

    def forward(self, x: torch.Tensor, place: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """One character: its key and value are kept at its place, and all that are kept are attended to."""
        y = self.norm1(x)
        self.keys.index_copy_(0, place, self.k(y))
        self.values.index_copy_(0, place, self.v(y))
        return self.mixed(x, self.q(y), self.keys, self.values, mask)

    def at_once(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """A whole text, for training."""
        y = self.norm1(x)
        return self.mixed(x, self.q(y), self.k(y), self.v(y), mask)

    def mixed(
        self, x: torch.Tensor, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor
    ) -> torch.Tensor:
        heads = [t.unflatten(-1, (HEADS, -1)).transpose(-3, -2) for t in (q, k, v)]
        scores = heads[0] @ heads[1].transpose(-1, -2) * (WIDTH // HEADS) ** -0.5
        answer = torch.softmax(scores + mask, -1) @ heads[2]
        x = x + self.o(answer.transpose(-3, -2).flatten(-2))
        return x + self.down(torch.relu(self.up(self.norm2(x))))


class CharLm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(len(CHARACTERS), WIDTH), nn.Embedding(PLACES, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, len(CHARACTERS))

    def forward(self, token: torch.Tensor, place: torch.Tensor) -> torch.Tensor:
        """The scores of the character behind this one, which stands at that place; those before it came before."""
        x = self.tokens(token) + self.places(place)
        mask = torch.where(torch.arange(PLACES) <= place, 0.0, -1e9)
        for block in self.blocks:
            x = block(x, place, mask)
        return self.head(self.norm(x))

    def at_once(self, tokens: torch.Tensor) -> torch.Tensor:
        count = tokens.shape[-1]
        x = self.tokens(tokens) + self.places(torch.arange(count))
        mask = torch.full((count, count), -1e9).triu(1)
        for block in self.blocks:
            assert isinstance(block, Block)
            x = block.at_once(x, mask)
        return self.head(self.norm(x))


def model() -> tuple[nn.Module, tuple[torch.Tensor, ...], dict[str, Any]]:
    """Trained on all of the text but its last tenth, in some twenty seconds."""
    torch.manual_seed(0)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # several would wait for each other longer than they work
    net, text = CharLm(), torch.tensor([CHARACTERS.index(c) for c in TEXT])
    optimiser = torch.optim.Adam(net.parameters(), 3e-3)
    for _ in range(STEPS):
        starts = torch.randint(LEARNT - SPAN, (BATCH,))
        rows = torch.stack([text[s : s + SPAN + 1] for s in starts])
        loss = nn.functional.cross_entropy(net.at_once(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    torch.set_num_threads(threads)
    text_part = {
        "name": "the last tenth of pages of Python's manual", "characters": CHARACTERS, "held_out": TEXT[LEARNT:],
        "calibration": TEXT[:PLACES],
    }  # fmt: skip
    return net.eval(), (torch.tensor([0]), torch.tensor([0])), text_part
