"""Where the engine finds what: its memory is one array of integers, made of rows that point to each other.

A name here is an offset into a row; `m[c + FILLED]` is how many slots of the channel whose row begins at `c` were
filled. Rows of one kind lie side by side, so that `x += SIZE` is the next. One array and addresses, because that is
what compiles fast and runs fast.
"""

from __future__ import annotations

FAR = 1 << 60
UNBOUNDED = 1 << 59
TICKS = 1 << 16  # of a cycle, for the pace of external memory
SWEEPS_BEFORE_KEPT = 32  # at first, and after every time that a state was found to recur
LOG = 1 << 12  # stalls kept of each process for the critical path

# bits of FLAGS, of ports and of starts
TOKEN, SLOT, TAKE, FILL, LOAD, STORE, SIMPLE, BACK = 1, 2, 4, 8, 16, 32, 64, 128

# the beginning of the memory; NEAR, FAR_BACK: the process that was last found not to be where it was (recurrence.py);
# WORK: events and turns gone through one by one, which is what a run takes; MOST_WORK: when it is given up
(
    START_GAP,
    FRAMES,
    PROCESSES,
    PROCESSES_END,
    CHANNELS,
    CHANNELS_END,
    NEAR,
    FAR_BACK,
    WORK,
    MOST_WORK,
    HEADER,
) = range(11)

# a process; MODE is 0 between phases, 1 inside one, 2 when all is done; RISE, TURN: how far it went on (recurrence.py)
(
    MODE, PHASE, FIRST_PHASE, PHASES_END, FRAME, OFFSET, BUBBLES, FROZEN, KNOWN_FROZEN, MOMENTS,
    STARTS, STARTS_END, WAKES, WAKES_END, TIMES, LOG_AT, LOGGED, READY, RISE, TURN, PROCESS_SIZE,
) = range(21)  # fmt: skip

# a phase; FLUSHES: what is behind its front goes on while that waits; MOMENTS_AT: where freezes are noted until the
# front has got there; ONE_CLOCK: its pipeline stalls whole, or what is behind its front can never be held up (which
# ORDERED channels allow)
PORTS, PORTS_END, LENGTH, DELAY, MOMENTS_AT, MEMBERS, ORDERED, ONE_CLOCK, FLUSHES, PHASE_SIZE = range(10)

# a port; LATER: stages behind the front; SHIFT: how long after NEXT it is met, where all is known when the front is
# left; NEXT: when it is met next, in the phase's own time; SLOTS: what it claims in a run; the last five: its turn
(
    FLAGS, CHANNEL, COUNT, STAGE, LATER, SHIFT, NEXT, LEFT, STEP, LEVELS, LEVELS_END, WAITED, SLOTS,
    QUEUE, QUEUE_SIZE, QUEUED, QUEUE_HEAD, AHEAD, PACE, LATENCY, PAID,
    LAST_OFFSET, MARGIN, SLOPE, LINEAR, TURN_WAIT, PORT_SIZE,
) = range(27)  # fmt: skip

# a level of a port's pattern: STRIDE of local time from one counter to the next; and a run of counters
STRIDE, RUNS, RUNS_END, RUN, POSITION, LEVEL_SIZE = range(6)
RUN_BASE, RUN_LENGTH, RUN_SIZE = range(3)

# what a process waits for before it starts, and hands on when it ends
START_CHANNEL, START_FLAGS, START_WAITED, START_SIZE = range(4)

# a channel: slots counted by what was done with them; the sequences of times, and how far each reader of one is
(
    DEPTH, CLAIMED, FILLED, HELD, FREED, SETTLED, SEEN, HIGH, FIRST_FILL, FIRST_TAKE,
    FILLS, CLAIMS, TAKES, HELD_RUN, SETTLED_RUN, SLOT_RUN, SEEN_RUN, WRITER, READER, CHANNEL_SIZE,
) = range(20)  # fmt: skip

# a sequence of times, kept as runs (first slot, its time, time from one to the next) in a ring of MASK + 1 runs
RING, MASK, HEAD, GROW, SEQUENCE_SIZE = range(5)
RUN_ENTRIES = 3
MOST_NEW_RUNS = 4  # an access adds fewer
