"""The inner part of `in_order.py`: every task as far as it can go, in turn. Plain Python, or compiled.

Tables are rows of numbers. A task's nests, a nest's ports and a port's accesses lie one behind the other.
"""

from __future__ import annotations

from penstock.compiler.jit import Words, WordTable, jit

# columns of a task
AT = 0  # the nest it is in
END = 1  # the one after its last
START = 2  # when the nest it is in starts
READY = 3  # whether it may have something new to look at
# columns of a nest
FIRST_PORT = 0
LAST_PORT = 1  # the one after it
LATENCY = 2  # until the next one starts, if it never waits
NEXT = 3  # when the next one starts
ISSUED = 4  # how much earlier than it writes an iteration last waits for what it reads
# columns of a port
CHANNEL = 0
WRITES = 1
SIZE = 2  # accesses
TOKEN = 3  # the first one's
WAITS = 4  # where it is kept in which cycle each access must be possible
LOCAL = 5  # and in which one it takes place
LATE = 6  # where its lateness after 0, 1, 2, ... accesses is
SEES = 7  # where it is kept how many accesses of each of the nest's ports the next one comes after
LIKE = 8  # the first port of the nest that does the same in the same cycles
IS_BLOCK = 9
MET = 10  # accesses of which the lateness is known
PASSED = 11  # accesses of which the time is known
# columns of a channel
TIMES = 0  # where the times of its tokens are
WAITERS = 1  # the first token that waits for a slot
PLACES = 2  # where it is kept which token frees the slot of which
WRITTEN = 3  # tokens of which the time is known
READ = 4
WRITER = 5  # tasks
READER = 6


@jit
def meet(
    port: Words, channel: Words, start: int, cycles: Words, places: Words, late: Words, written: Words, read: Words
) -> None:
    """How late the nest is after those accesses whose token, or slot, is known by now."""
    k, times = port[MET], channel[TIMES]
    while k < port[SIZE]:
        token, by = port[TOKEN] + k, 0
        if port[WRITES]:
            if token >= channel[WAITERS]:
                frees = places[channel[PLACES] + token - channel[WAITERS]]
                if frees >= channel[READ]:
                    break
                by = read[times + frees] + 1 - cycles[port[WAITS] + k] - start
        else:
            if token >= channel[WRITTEN]:
                break
            by = written[times + token] + 1 - cycles[port[WAITS] + k] - start
        at = port[LATE] + k
        late[at + 1] = max(late[at], by)
        k += 1
    port[MET] = k


@jit
def lateness(nest: Words, ports: WordTable, number: int, k: int, cycles: Words, sees: Words, late: Words) -> int:
    """How late the next access of a port is: the most of all that it comes after. -1 where not all of that is known.

    Accesses are in the order of their cycles, so it comes after all that the one before it came after.
    """
    port, most = ports[number], 0
    now = cycles[port[LOCAL] + k]
    for other in range(nest[FIRST_PORT], nest[LAST_PORT]):
        one, at = ports[other], port[SEES] + other - nest[FIRST_PORT]
        if other == number and not port[IS_BLOCK]:
            sees[at] = k + 1
        else:
            until = now - nest[ISSUED] if port[WRITES] and not one[WRITES] else now
            while sees[at] < one[SIZE] and cycles[one[WAITS] + sees[at]] <= until:
                sees[at] += 1
        if sees[at] > one[MET]:
            return -1
        most = max(most, late[one[LATE] + sees[at]])
    return most


@jit
def pass_on(
    nest: Words, ports: WordTable, number: int, channels: WordTable, start: int, cycles: Words, sees: Words,
    late: Words, times: Words,
) -> bool:  # fmt: skip
    """The accesses of one port of which all is known that they come after. Whether there was any."""
    port, like = ports[number], ports[ports[number][LIKE]]
    to, alike = channels[port[CHANNEL]][TIMES] + port[TOKEN], channels[like[CHANNEL]][TIMES] + like[TOKEN]
    before = port[PASSED]
    while port[PASSED] < port[SIZE]:
        k = port[PASSED]
        if port[LIKE] != number:
            if k >= like[PASSED]:
                break
            times[to + k] = times[alike + k]
        else:
            most = lateness(nest, ports, number, k, cycles, sees, late)
            if most < 0:
                break
            times[to + k] = cycles[port[LOCAL] + k] + start + most
        port[PASSED] = k + 1
    return port[PASSED] > before


@jit
def follow(
    tasks: WordTable, nests: WordTable, ports: WordTable, channels: WordTable,
    cycles: Words, sees: Words, places: Words, late: Words, written: Words, read: Words,
) -> None:  # fmt: skip
    """Until nobody can go on: the tasks that have not reached their end then are stuck.

    A task is looked at again when one of its neighbours has moved.
    """
    moved = True
    while moved:
        moved = False
        for task in tasks:
            if task[READY] == 0:
                continue
            task[READY] = 0
            while task[AT] < task[END]:
                nest, start = nests[task[AT]], task[START]
                done, most = True, 0
                for number in range(nest[FIRST_PORT], nest[LAST_PORT]):
                    port = ports[number]
                    meet(port, channels[port[CHANNEL]], start, cycles, places, late, written, read)
                for number in range(nest[FIRST_PORT], nest[LAST_PORT]):
                    port = ports[number]
                    channel = channels[port[CHANNEL]]
                    times = written if port[WRITES] else read
                    if pass_on(nest, ports, number, channels, start, cycles, sees, late, times):
                        channel[WRITTEN if port[WRITES] else READ] = port[TOKEN] + port[PASSED]
                        tasks[channel[READER if port[WRITES] else WRITER]][READY] = 1
                        moved = True
                    done = done and port[MET] == port[SIZE] and port[PASSED] == port[SIZE]
                    most = max(most, late[port[LATE] + port[MET]])
                if not done:
                    break
                task[START] = nest[NEXT] = start + nest[LATENCY] + most
                task[AT] += 1
