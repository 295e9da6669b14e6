#!/bin/sh
# A batch system of one node, under the names of Slurm's and LSF's commands; what it prints is what they print.
# $BATCH is its folder. $BATCH/fate says how the next job ends, if not by itself: `NODE_FAIL`, `TIMEOUT`, `SLEEP`.
me=$(basename "$0")
last() { for word; do :; done; echo "$word"; }
submit() {
    number=$(($(cat "$BATCH/count" 2>/dev/null || echo 4100) + 1)); echo $number > "$BATCH/count"
    job="$BATCH/$number"; mkdir "$job"; printf '%s\n' "$*" > "$job/asked"
    fate=$(cat "$BATCH/fate" 2>/dev/null); rm -f "$BATCH/fate"
    if [ -n "$fate" ] && [ "$fate" != SLEEP ]; then echo "$fate" > "$job/end"; return; fi
    setsid sh -c "'$(last "$@")' > '$output' 2>&1; echo \$? > '$job/code'" < /dev/null > /dev/null 2>&1 &
    echo $! > "$job/pid"
}
state() {
    job="$BATCH/$1"
    [ -d "$job" ] || return 1
    if [ -f "$job/end" ]; then cat "$job/end"
    elif [ -f "$job/code" ]; then echo ENDED
    else echo RUNNING; fi
}
cancel() { echo CANCELLED > "$BATCH/$1/end"; kill -9 "-$(cat "$BATCH/$1/pid")" 2>/dev/null; }
[ -f "$BATCH/away" ] && { echo "$me: error: Unable to contact slurm controller (connect failure)" >&2; exit 1; }
case $me in
sbatch)
    [ "$1" = --version ] && { echo "slurm 23.11.4"; exit 0; }
    [ -f "$BATCH/refuse" ] && { echo "sbatch: error: Batch job submission failed: Invalid partition name specified" >&2
        exit 1; }
    for word; do case $word in --output=*) output=${word#--output=};; esac; done
    submit "$@"; echo "$number;site";;
squeue)
    for word; do case $word in --jobs=*) id=${word#--jobs=};; esac; done
    case $(state "$id") in
    RUNNING) echo RUNNING;;
    *) echo "slurm_load_jobs error: Invalid job id specified" >&2; exit 1;;
    esac;;
sacct)
    for word; do case $word in --jobs=*) id=${word#--jobs=};; esac; done
    case $(state "$id") in
    ENDED) [ "$(cat "$BATCH/$id/code")" = 0 ] && echo "COMPLETED|0:0" || echo "FAILED|$(cat "$BATCH/$id/code"):0";;
    CANCELLED) echo "CANCELLED by 1000|0:15";;
    "") ;;
    *) echo "$(state "$id")|0:0";;
    esac;;
bsub)
    [ "$1" = -V ] && { echo "IBM Spectrum LSF 10.1.0.14, Jun 23 2023" >&2; exit 0; }
    while [ $# -gt 1 ]; do [ "$1" = -o ] && output=$2; all="$all $1"; shift; done
    submit "$1"; echo "$all" > "$job/asked"; echo "Job <$number> is submitted to default queue <normal>.";;
bjobs)
    id=$(last "$@")
    case $(state "$id") in
    RUNNING) echo "RUN|-|-";;
    ENDED) [ "$(cat "$BATCH/$id/code")" = 0 ] && echo "DONE|-|-" || echo "EXIT|$(cat "$BATCH/$id/code")|-";;
    CANCELLED) echo "EXIT|130|TERM_OWNER: job killed by owner";;
    TIMEOUT) echo "EXIT|140|TERM_RUNLIMIT: job killed after reaching LSF run time limit";;
    NODE_FAIL) echo "EXIT|-|TERM_UNKNOWN: unknown reason";;
    *) echo "Job <$id> is not found" >&2; exit 255;;
    esac;;
scancel) cancel "$1";;
bkill) cancel "$1"; echo "Job <$1> is being terminated";;
esac
