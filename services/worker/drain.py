"""`python -m penstock.services.worker.drain [NAME…]`: the workers, or have some end their steps and take no others."""

from __future__ import annotations

import sys

import redis

from penstock.services.settings import SettingError, Settings
from penstock.services.worker.sign_of_life import connect, order_drain, signs


def main() -> int:
    names = sys.argv[1:]
    try:
        client = connect(Settings.from_environment().require_redis_url())
        known = {sign.name: sign for sign in signs(client)}
        if unknown := [name for name in names if name not in known or not known[name].alive]:
            sys.stderr.write(f"penstock: no worker alive is called {', '.join(unknown)}\n")
            return 1
        for name in names:
            order_drain(client, name)
    except (SettingError, redis.RedisError) as error:
        sys.stderr.write(f"penstock: {error}\n")
        return 2
    for sign in [] if names else known.values():
        state = "drains" if sign.drains else "alive" if sign.alive else "silent"
        sys.stdout.write(f"{sign.name}  {state:6}  {sign.concurrency} at once  {', '.join(sign.queues)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
