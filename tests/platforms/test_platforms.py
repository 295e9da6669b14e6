"""Platform files: all load, agree with the published device tables, and bad ones are refused by name."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from importlib.resources import files

import pytest

from penstock.compiler.errors import PenstockError
from penstock.compiler.platforms import FAMILIES, Resources, load_platform, parse_platform, platform_names
from penstock.compiler.schedule import load_library

GOOD = """
name = "toy"
title = "Toy"
part = "x"
shell = ""
family = "ecp5"
clock_mhz = 100.0
max_clock_mhz = 120.0
[fill]
lut = 0.5
ff = 0.5
dsp = 0.5
bram18 = 0.5
uram = 0.5
[[die]]
name = "a"
position = [0, 0]
resources = { lut = 1000, ff = 2000, dsp = 10, bram18 = 4, uram = 0 }
reserved = { lut = 100, ff = 0, dsp = 0, bram18 = 0, uram = 0 }
[[die]]
name = "b"
position = [1, 0]
resources = { lut = 1000, ff = 2000, dsp = 10, bram18 = 4, uram = 0 }
[[memory]]
name = "ddr"
kind = "ddr"
die = "a"
gigabytes = 1.0
ports = 2
port_gb_s = 4.5
port_bits = 128
[[link]]
between = ["a", "b"]
wires = 50
"""


def test_the_eight_platforms_of_the_design_are_there():
    expected = {"u55c", "u280", "u200", "zcu104", "zu3eg", "ecp5-85k", "ecp5-45k", "ecp5-25k"}
    assert expected <= set(platform_names())


def test_file_names_are_platform_names():
    names = {f.name.removesuffix(".toml") for f in files("penstock.compiler.platforms").joinpath("data").iterdir()}
    assert names == set(platform_names())


@pytest.mark.parametrize("name", platform_names())
def test_every_platform_loads_with_limits_below_what_is_there(name: str):
    platform = load_platform(name)
    assert platform.name == name
    for resource, limit in platform.limits.items():
        assert 0 <= limit <= platform.available.as_dict()[resource]
    assert platform.limits.lut > 0
    assert load_library(platform.operators, platform.clock_mhz).period_ns <= 1000 / platform.clock_mhz + 0.01
    assert load_library(platform.operators, platform.max_clock_mhz)


@pytest.mark.parametrize(
    ("name", "lut", "ff", "dsp", "bram18", "uram", "dies"),
    [
        ("u280", 1_303_680, 2_607_360, 9_024, 4_032, 960, 3),
        ("u55c", 1_303_680, 2_607_360, 9_024, 4_032, 960, 3),
        ("u200", 1_182_240, 2_364_480, 6_840, 4_320, 960, 3),
        ("zcu104", 230_400, 460_800, 1_728, 624, 96, 1),
        ("zu3eg", 71_000, 142_000, 360, 412, 0, 1),
        ("ecp5-85k", 84_000, 84_000, 156, 208, 0, 1),
    ],
)
def test_device_totals(name: str, lut: int, ff: int, dsp: int, bram18: int, uram: int, dies: int):
    platform = load_platform(name)
    whole = Resources()
    for die in platform.dies:
        whole = whole + die.resources
    assert whole == Resources(lut, ff, dsp, bram18, uram)
    assert len(platform.dies) == dies


def test_u55c_memory_and_dynamic_region():
    platform = load_platform("u55c")
    (hbm,) = platform.memories
    assert (hbm.gb_s, hbm.gigabytes, hbm.die) == (460.0, 16.0, "slr0")
    assert [die.available.lut for die in platform.dies] == [388_800, 364_800, 395_040]


def test_modules_that_are_alike_serve_a_design_together():
    """Four modules of DDR4 bring four times what one does; memory of another kind is not mixed in."""
    modules = load_platform("u200").fastest_memory
    assert modules is not None
    assert (modules.name, modules.ports, modules.gb_s) == ("ddr0 and ddr1 and ddr2 and ddr3", 4, 77.0)
    assert modules.gigabytes == 64.0
    assert [one.die for one in load_platform("u200").fastest_memories] == ["slr0", "slr1", "slr1", "slr2"]
    assert load_platform("u280").fastest_memory == load_platform("u280").memories[0]
    assert load_platform("ecp5-85k").fastest_memory is None


def test_what_follows_from_a_family_is_not_said_twice():
    assert {load_platform(name).family.name for name in platform_names()} == set(FAMILIES)
    with pytest.raises(PenstockError, match="no family 'virtex'") as refused:
        parse_platform(GOOD.replace('family = "ecp5"', 'family = "virtex"'), "platform toy")
    assert "ecp5" in refused.value.hint


def test_platforms_are_frozen():
    with pytest.raises(FrozenInstanceError):
        load_platform("u55c").clock_mhz = 1.0  # type: ignore[misc]


def test_an_unknown_name_lists_the_known():
    with pytest.raises(PenstockError) as caught:
        load_platform("u55")
    assert caught.value.code == "unknown-platform"
    assert "u55c" in caught.value.limit
    assert "ecp5-25k" in caught.value.limit


def test_a_name_with_a_path_in_it_reads_nothing():
    with pytest.raises(PenstockError):
        load_platform("../data/u55c")


def test_a_good_text_parses():
    platform = parse_platform(GOOD, "toy")
    assert platform.available == Resources(1900, 4000, 20, 8, 0)
    assert platform.limits == Resources(950, 2000, 10, 4, 0)
    assert platform.memories[0].gb_s == 9.0


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("clock_mhz = 100.0\n", "", "'clock_mhz' is missing"),
        ("dsp = 10,", "", "'dsp' is missing"),
        ("dsp = 10,", "dsp = -10,", "'dsp' is -10"),
        ("dsp = 10,", "dsp = 1.5,", "'dsp' is 1.5"),
        ("dsp = 10,", "dsp = true,", "'dsp' is True"),
        ("dsp = 10,", 'dsp = "ten",', "'dsp' is 'ten'"),
        ("port_gb_s = 4.5", "port_gb_s = 0", "'port_gb_s' is 0"),
        ("port_gb_s = 4.5", "port_gb_s = nan", "'port_gb_s' is nan"),
        ("port_gb_s = 4.5", "port_gb_s = inf", "'port_gb_s' is inf"),
        ("ports = 2", "ports = 0", "'ports' is 0"),
        ("lut = 0.5", "lut = 1.5", "'lut' is 1.5"),
        ("lut = 100,", "lut = 1001,", "more lut is reserved"),
        ('die = "a"', 'die = "c"', "names die 'c'"),
        ('between = ["a", "b"]', 'between = ["a", "z"]', "names die 'z'"),
        ('between = ["a", "b"]', 'between = ["a"]', "names 1 dies"),
        ('name = "b"\nposition', 'name = "a"\nposition', "two dies are called 'a'"),
        ("position = [1, 0]", "position = [1]", "positions differ"),
        ("wires = 50", "wires = 50\nwirez = 1", "unknown field 'wirez'"),
        ("clock_mhz = 100.0", "clock_mhz = 200.0", "above 'max_clock_mhz'"),
        ('name = "toy"', 'name = toy"', "not readable as TOML"),
    ],
)
def test_a_bad_file_is_refused_by_the_fields_name(old: str, new: str, said: str):
    assert old in GOOD
    with pytest.raises(PenstockError) as caught:
        parse_platform(GOOD.replace(old, new, 1), "toy.toml")
    assert caught.value.code == "bad-platform-file"
    assert said in str(caught.value)
    assert "toy.toml" in caught.value.where


def test_a_clock_beyond_the_tables_is_refused_not_extrapolated():
    platform = load_platform("ecp5-85k")
    assert platform.check_clock(100.0) == 100.0
    for clock in (500.0, 0.0, -1.0, float("nan")):
        with pytest.raises(PenstockError) as caught:
            platform.check_clock(clock)
        assert caught.value.code == "clock-out-of-range"


def test_shares_of_a_resource_that_is_not_there_are_infinite():
    assert Resources(uram=1).share_of(Resources(lut=10))["uram"] == float("inf")
    assert Resources(lut=5).share_of(Resources(lut=10)) == {
        "lut": 0.5, "ff": 0.0, "dsp": 0.0, "bram18": 0.0, "uram": 0.0,
    }  # fmt: skip
