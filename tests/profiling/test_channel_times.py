"""How deep a channel must be, held to its definition: every depth tried, token by token."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.profiling.channel_times import IN_USE, LATE, ChannelTimes
from penstock.profiling.held import most_in_use, most_when_late
from penstock.profiling.sampling import Times, evenly

_MOST = 700  # enough for the search that skips most tokens


@st.composite
def drawn_channels(draw: st.DrawFn) -> ChannelTimes:
    """Bursts and pauses on both sides; every token, or samples; streams, or blocks that are claimed before."""
    count = draw(st.one_of(st.integers(1, 12), st.integers(1, _MOST)))
    chance = np.random.default_rng(draw(st.integers(0, 1 << 30)))
    written, read = _times(draw, chance, count), _times(draw, chance, count)
    read += max(0, int((written - read).max()) + draw(st.integers(1, 5)))
    claimed = np.maximum.accumulate(written - chance.integers(0, 9, count)) if draw(st.booleans()) else written
    index = np.cumsum(chance.integers(1, draw(st.sampled_from([2, 2, 3, 9])), count)) - 1
    index -= index[0]
    return ChannelTimes(index, int(index[-1]) + 1, claimed, written, read)


def _times(draw: st.DrawFn, chance: np.random.Generator, count: int) -> Times:
    """Never falling: a pace, slower at the end of each burst, now and then with a long pause."""
    pace, burst, rest = draw(st.integers(1, 3)), draw(st.sampled_from([1, 2, 7, 40])), draw(st.integers(0, 90))
    steps = np.full(count, pace) + rest * (np.arange(count) % burst == burst - 1)
    steps += chance.integers(1, 300, count) * (chance.random(count) < draw(st.sampled_from([0.0, 0.01, 0.2])))
    return np.cumsum(steps)


def high_water(channel: ChannelTimes) -> int:
    """Tokens up to each, less those that were read before it took its slot."""
    most = 1
    for token, claim in zip(channel.index, channel.claimed, strict=True):
        read = channel.index[channel.read < claim]
        most = max(most, int(token) + 1 - (int(read[-1]) + 1 if len(read) else 0))
    return most


def is_in_time(channel: ChannelTimes, depth: int) -> bool:
    """Whether a writer that waits for slots, and is late from then on, still writes every token before it is read."""
    late = 0
    for token, written, read in zip(channel.index, channel.written, channel.read, strict=True):
        if token >= depth:
            freed = channel.read[np.searchsorted(channel.index, token - depth)] + 1
            late = max(late, int(freed - written))
        if written + late >= read:
            return False
    return True


@given(drawn_channels())
@settings(max_examples=150)
def test_high_water_is_the_most_tokens_in_the_channel(channel: ChannelTimes):
    assert channel.high_water == high_water(channel)


@given(drawn_channels())
@settings(max_examples=100)
def test_the_least_depth_is_in_time_and_none_less_is(channel: ChannelTimes):
    least = channel.least_depth
    assert 1 <= least <= channel.high_water
    assert least == channel.high_water or is_in_time(channel, least)
    tried = {1, least // 2, least - 1} & set(range(1, least))
    assert not any(is_in_time(channel, depth) for depth in tried)


@given(drawn_channels())
@settings(max_examples=100)
def test_compiled_code_that_goes_on_token_by_token_finds_what_the_search_finds(channel: ChannelTimes):
    """It is begun with only where there are many tokens, which none of these channels has."""
    index, written, read = (times.tolist() for times in (channel.index, channel.written, channel.read))
    assert max(1, most_in_use(index, channel.claimed.tolist(), read)) == channel.high_water
    late = most_when_late(index, written, read) or channel.high_water
    assert min(channel.high_water, late) == channel.least_depth


def test_compiled_code_is_as_the_plain_functions_are():
    chance = np.random.default_rng(3)
    for count in (1, 5, 400):
        index, written = np.arange(count), np.cumsum(chance.integers(1, 9, count))
        read = np.cumsum(chance.integers(1, 9, count)) + 8 * count
        lists = [times.tolist() for times in (index, written, read)]
        assert IN_USE.function()(index, written, read) == most_in_use(*lists) > 0
        assert LATE.function()(index, written, read) == most_when_late(*lists) > 0
        lists[2] = [0] * count
        assert LATE.function()(index, written, np.zeros(count, np.int64)) == most_when_late(*lists) == 0


@given(drawn_channels())
@settings(max_examples=30)
def test_a_deeper_channel_is_in_time_too(channel: ChannelTimes):
    """What lets the least depth be found without trying them all."""
    verdicts = [is_in_time(channel, depth) for depth in range(1, min(channel.high_water, 20) + 1)]
    assert verdicts == sorted(verdicts)


@pytest.mark.parametrize(("count", "most"), [(1, 4), (4, 4), (1000, 7), (10**6, 256)])
def test_what_is_looked_at_of_a_channel_is_spread_evenly_and_found_once(count: int, most: int):
    found = evenly(count, most)
    assert (found[0], found[-1], len(found)) == (0, count - 1, min(count, most))
    assert len({*np.diff(found).tolist()}) <= 2
    assert evenly(count, most) is found
    with pytest.raises(ValueError, match="read-only"):
        found[0] = 1  # other channels of as many tokens have it too
