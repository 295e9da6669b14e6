#!/bin/sh
# Takes the embedded Postgres of a service at rest to another major version: dumps it with the old programs, restores it
# with the new ones, and keeps the old data folder beside. Nothing is changed if a step fails.
#
#   PENSTOCK_HOME=/var/lib/penstock PENSTOCK_SERVERS=wheel deploy/upgrade-postgres.sh
#
# PENSTOCK_SERVERS says where the new version is looked for (path or wheel); the old one is found by itself.
set -eu
home=${PENSTOCK_HOME:?set it to the folder of the service}
penstock=${PENSTOCK:-penstock}
old=$(cat "$home/postgres/PG_VERSION")
dump="$home/before-upgrade-from-$old"
kept="$home/postgres-$old"
[ ! -e "$kept" ] || { echo "$kept is there already: remove it first" >&2; exit 1; }

env -u PENSTOCK_SERVERS "$penstock" backup --database-only "$dump"
mv "$home/postgres" "$kept"
if ! "$penstock" restore "$dump"; then
    rm -rf "$home/postgres"
    mv "$kept" "$home/postgres"
    echo "the upgrade failed; the service is as it was" >&2
    exit 1
fi
new=$(cat "$home/postgres/PG_VERSION")
echo "Postgres $old -> $new. When all is well, remove $kept and $dump"
