"""An array cycle by cycle: who takes a word, who waits. The same rules as the SystemVerilog, and nothing of its data.

All that happens in a cycle is decided by what was there when it began.
"""

from __future__ import annotations

from penstock.compiler.jit import Ints, jit

TURNS, LENGTH, FLAGS, SECOND, SECOND_FLAGS, BODY = 0, 1, 2, 3, 4, 5
AT, SLOT, TURN, RUNS = 0, 1, 2, 3
"""State of what moves words within a core."""
HELD, COMING, THERE = 0, 1, 2
"""Of a FIFO whose words are asked for: promised, on their way, in it."""
STEPS, LEVEL_COUNT, LEFT_KEPT, RIGHT_KEPT, SUMMED, LEFT_TILES, RIGHT_TILES, SUM_TILES, FIRST_COUNT = range(9)


@jit
def all_first(mask: int, at: Ints, levels: int) -> bool:
    found = True
    for level in range(levels):
        found = found and (mask >> level & 1 == 0 or at[level] == 0)
    return found


@jit
def all_last(mask: int, at: Ints, mac: Ints, levels: int) -> bool:
    found = True
    for level in range(levels):
        found = found and (mask >> level & 1 == 0 or at[level] == mac[FIRST_COUNT + level] - 1)
    return found


@jit
def length_of(state: Ints, body: Ints) -> int:
    return body[LENGTH] if state[SLOT] == 0 else body[SECOND]


@jit
def flags_of(state: Ints, body: Ints) -> int:
    return body[FLAGS] if state[SLOT] == 0 else body[SECOND_FLAGS]


@jit
def word_passes(state: Ints, body: Ints) -> None:
    state[AT] += 1
    if state[AT] < length_of(state, body):
        return
    state[AT] = 0
    if state[SLOT] + 1 < body[BODY]:
        state[SLOT] += 1
        return
    state[SLOT] = 0
    state[TURN] += 1
    if state[TURN] == body[TURNS]:
        state[RUNS] = 0


@jit
def run_array(
    size: Ints,  # rows, columns, room, link, levels, ports, most cycles
    mac: Ints,
    channels: Ints,  # by port
    order: Ints,  # ports in the order in which channels serve them
    left: Ints,  # words that a reader or writer still has to move, by port
    bodies: Ints,  # by mover and drain: left ones, right ones, drains
    states: Ints,
    links: Ints,  # words before every mover: left ones, right ones
    asked: Ints,  # readers' answers, then drains' words
    tokens: Ints,  # by core: left free, left full, right free, right full, sums free, sums full
    inner: Ints,  # by core: step, running, wholes on their way (three), busy steps
    loops: Ints,  # by core: the turn of every loop
    going: Ints,  # what passes in this cycle, by mover and drain
    granted: Ints,  # by port
    taken: Ints,  # by channel
    busy: Ints,  # words, by channel
) -> int:
    """Cycles until all is written; -1 if it takes too long."""
    rows, columns, room, link, levels, ports, most = size[0], size[1], size[2], size[3], size[4], size[5], size[6]
    cores, readers = rows * columns, rows + columns
    cycle = 0
    writing = 0
    for port in range(readers, ports):
        writing += 1 if left[port] > 0 else 0
    while writing > 0:
        if cycle >= most:
            return -1
        for channel in range(len(taken)):
            taken[channel] = 0
        for at in range(ports):
            port = order[at]
            granted[port] = 0
            if left[port] == 0 or taken[channels[port]]:
                continue
            if port < readers:
                wants = asked[port][HELD] != room
            else:
                wants = asked[readers + (rows - 1) * columns + port - readers][THERE] > 0
            if wants:
                granted[port] = 1
                taken[channels[port]] = 1
                busy[channels[port]] += 1
        # movers: what passes is decided for all before anything moves
        for way in range(2):
            for core in range(cores):
                mover = way * cores + core
                state, body = states[mover], bodies[mover]
                going[mover] = 0
                if state[RUNS] == 0:
                    continue
                flags = flags_of(state, body)
                row, column = core // columns, core % columns
                first = column == 0 if way == 0 else row == 0
                reader = row if way == 0 else rows + column
                there = asked[reader][THERE] if first else links[mover][0]
                if there == 0 or (flags & 1 and state[AT] == 0 and tokens[core][2 * way] == 0):
                    continue
                if flags & 2 and links[mover + (1 if way == 0 else columns)][0] == link:
                    continue
                going[mover] = 1
        for core in range(cores):
            drain = 2 * cores + core
            state, body = states[drain], bodies[drain]
            going[drain] = 0
            if state[RUNS] == 0 or asked[readers + core][HELD] == room:
                continue
            if flags_of(state, body) & 1:
                going[drain] = 1 if state[AT] != 0 or tokens[core][5] > 0 else 0
            else:
                going[drain] = 1 if asked[readers + core - columns][THERE] > 0 else 0
        # multipliers, which meet their core's tokens only
        for core in range(cores):
            own, have, at = inner[core], tokens[core], loops[core]
            give_sums = own[4]
            own[4] = own[3]
            own[3] = own[2]
            own[2] = 0
            able = own[1] == 1
            new_left, new_right, new_sum = False, False, False
            if able and own[0] == 0:
                new_left = all_first(mac[LEFT_KEPT], at, levels)
                new_right = all_first(mac[RIGHT_KEPT], at, levels)
                new_sum = all_first(mac[SUMMED], at, levels)
                able = not ((new_left and have[1] == 0) or (new_right and have[3] == 0) or (new_sum and have[4] == 0))
            free_left, free_right = 0, 0
            if able:
                own[5] += 1
                have[1] -= 1 if new_left else 0
                have[3] -= 1 if new_right else 0
                have[4] -= 1 if new_sum else 0
                own[0] += 1
                if own[0] == mac[STEPS]:
                    own[0] = 0
                    free_left = 1 if all_last(mac[LEFT_KEPT], at, mac, levels) else 0
                    free_right = 1 if all_last(mac[RIGHT_KEPT], at, mac, levels) else 0
                    own[2] = 1 if all_last(mac[SUMMED], at, mac, levels) else 0
                    level = levels - 1
                    while level >= 0 and at[level] == mac[FIRST_COUNT + level] - 1:
                        at[level] = 0
                        level -= 1
                    if level >= 0:
                        at[level] += 1
                    else:
                        own[1] = 0
            # a core's movers and drain
            for way in range(2):
                mover = way * cores + core
                state, body = states[mover], bodies[mover]
                if going[mover] and flags_of(state, body) & 1:
                    have[2 * way] -= 1 if state[AT] == 0 else 0
                    have[2 * way + 1] += 1 if state[AT] == length_of(state, body) - 1 else 0
            drain = 2 * cores + core
            state, body = states[drain], bodies[drain]
            if going[drain] and flags_of(state, body) & 1:
                have[5] -= 1 if state[AT] == 0 else 0
                have[4] += 1 if state[AT] == length_of(state, body) - 1 else 0
            have[0] += free_left
            have[2] += free_right
            have[5] += give_sums
        # words go on
        for way in range(2):
            for core in range(cores):
                mover = way * cores + core
                if going[mover] == 0:
                    continue
                state, body = states[mover], bodies[mover]
                row, column = core // columns, core % columns
                if (way == 0 and column == 0) or (way == 1 and row == 0):
                    answer = asked[row if way == 0 else rows + column]
                    answer[THERE] -= 1
                    answer[HELD] -= 1
                else:
                    links[mover][0] -= 1
                if flags_of(state, body) & 2:
                    links[mover + (1 if way == 0 else columns)][0] += 1
                word_passes(state, body)
        for core in range(cores):
            drain = 2 * cores + core
            if going[drain] and flags_of(states[drain], bodies[drain]) & 1 == 0:
                above = asked[readers + core - columns]
                above[THERE] -= 1
                above[HELD] -= 1
            if going[drain]:
                word_passes(states[drain], bodies[drain])
        for port in range(readers, ports):
            if granted[port]:
                below = asked[readers + (rows - 1) * columns + port - readers]
                below[THERE] -= 1
                below[HELD] -= 1
        for port in range(ports):
            if granted[port]:
                left[port] -= 1
                if port >= readers and left[port] == 0:
                    writing -= 1
        for one in range(readers + cores):
            answer = asked[one]
            answer[THERE] += answer[COMING]
            answer[COMING] = 0
            new = granted[one] if one < readers else going[2 * cores + one - readers]
            if new:
                answer[COMING] = 1
                answer[HELD] += 1
        cycle += 1
    return cycle
