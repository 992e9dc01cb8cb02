from datetime import UTC, datetime

import pytest

from trainflow_tui.monitoring.nodes.node_status import node_status
from trainflow_tui.monitoring.nodes.sections import Section

NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)

IDENTITY = f"""hostname node-a
kernel Linux 6.1.0
machine x86_64
boot_id 2d931e96-824d-47c9-956a-f4274e367139
uptime_s 3021.51
cpus 128
date_s {NOW.timestamp() + 2.5:.9f}"""
DISKS = """Filesystem 1024-blocks Used Available Capacity Mounted on
tmpfs 1000 1000 0 100% /run
/dev/loop3 1000 1000 0 100% /snap/core
/dev/sda1 1000 500 500 50% /
10.0.0.1@o2ib:/scratch 1000 950 50 95% /scratch
//server/my share 1000 985 15 99% /mnt/my share
proc 0 0 0 - /proc"""
FUNCTIONS = """0000:19:00.0|0x10de|0x2330|0x030200|32.0 GT/s PCIe|16|nvidia
0000:3b:00.0|0x10de|0x2330|0x030200|32.0 GT/s PCIe|8|
0000:5d:00.0|0x1d94|0x6210|0x0b4000||0|hydcu"""
DEVICES = """index, name, temperature.gpu, ecc.errors.uncorrected.volatile.total, clocks_event_reasons.active
0, H100, 41, 0, 0x4
1, H100, 83, 2, 0x40"""


def section(name, text, code=0):
    return Section(name=name, text=text, exit_code=code)


def status(**sections):
    parts = {"end": section("end", "")}
    for name, value in sections.items():
        text, code = value if isinstance(value, tuple) else (value, 0)
        parts[name] = section(name, text, code)
    return node_status(parts, collected_at=NOW, source="test")


def signal(found, check):
    (one,) = [entry for entry in found.signals if entry.check == check]
    return one


def test_of_no_answer_everything_is_unknown_and_nothing_zero():
    found = node_status({}, collected_at=NOW, source="test", note="no connection")
    for field in found.__struct_fields__:
        if field not in ("signals", "collected_at", "source"):
            assert getattr(found, field) is None, field
    assert {entry.state for entry in found.signals} == {"unknown"}
    assert signal(found, "collector").text == "no connection"


def test_the_identity_is_told():
    found = status(identity=IDENTITY, load="0.45 1.00 0.75 2/102 10525")
    assert (found.name, found.kernel, found.uptime_s, found.cpus) == ("node-a", "Linux 6.1.0", 3021.51, 128)
    assert found.boot_id == "2d931e96-824d-47c9-956a-f4274e367139"
    assert (found.load.one_minute, found.load.five_minutes, found.load.fifteen_minutes) == (0.45, 1.0, 0.75)
    assert found.collected_at == "2026-01-01T12:00:00.000000Z"


@pytest.mark.parametrize(("ahead", "state"), [(2.5, "ok"), (-31.0, "warning"), (31.0, "warning")])
def test_a_clock_more_than_half_a_minute_off_is_a_warning(ahead, state):
    found = status(identity=f"date_s {NOW.timestamp() + ahead:.9f}")
    assert found.clock_offset_s == ahead
    assert signal(found, "clock").state == state


def test_a_date_without_nanoseconds_is_read():
    assert status(identity=f"date_s {NOW.timestamp():.0f}.N").clock_offset_s == 0


@pytest.mark.parametrize(("available", "state"), [(40, "warning"), (60, "ok")])
def test_memory_is_judged_by_what_is_available(available, state):
    found = status(memory=f"MemTotal:       1000 kB\nMemAvailable:   {available} kB")
    assert (found.mem_total_bytes, found.mem_available_bytes) == (1000 * 1024, available * 1024)
    assert signal(found, "memory").state == state


def test_disks_are_listed_and_those_that_can_fill_up_are_judged():
    found = status(disks=DISKS)
    assert [(disk.mount, disk.used_pct) for disk in found.disks] == [
        ("/run", 100.0),
        ("/snap/core", 100.0),
        ("/", 50.0),
        ("/scratch", 95.0),
        ("/mnt/my share", 98.5),
    ]
    assert found.disks[2].total_bytes == 1000 * 1024
    states = {entry.check: entry.state for entry in found.signals if entry.check.startswith("disk")}
    assert states == {"disk /": "ok", "disk /scratch": "warning", "disk /mnt/my share": "critical"}


def test_a_dead_mount_leaves_the_local_disks_and_one_forbidden_mount_leaves_them_all():
    local = "/dev/sda1 1000 500 500 50% /"
    assert [disk.mount for disk in status(disks=("", 124), local_disks=local).disks] == ["/"]
    assert [disk.mount for disk in status(disks=(local, 1)).disks] == ["/"]
    assert signal(status(disks=("", 124)), "disk").state == "unknown"


def test_an_old_process_in_state_d_is_a_warning_and_a_young_one_is_not():
    young, old = "D+    12  100 dd", "D     13 4000 python train.py\nZ 14 9000 sh"
    assert signal(status(processes=young), "blocked_processes").state == "ok"
    found = signal(status(processes=f"{young}\n{old}"), "blocked_processes")
    assert (found.state, found.value) == ("warning", 2)
    assert "python train.py (13)" in found.text
    assert signal(status(processes=("", 3)), "blocked_processes").state == "unknown"


def test_pressure_is_told_and_full_memory_pressure_judged():
    text = "cpu some avg10=0.01 avg60=7.5 avg300=4.67 total=5\nmemory full avg10=0 avg60=61.00 avg300=0 total=0"
    found = status(pressure=text)
    assert found.pressure_pct == {"cpu_some": 7.5, "memory_full": 61.0}
    assert signal(found, "memory_pressure").state == "warning"
    assert status(pressure=("", 1)).pressure_pct is None


def test_no_accelerator_is_a_normal_answer_and_an_unseen_bus_is_none():
    found = status(accelerators="")
    assert found.accelerators == ()
    assert (signal(found, "accelerators").state, signal(found, "accelerators").value) == ("ok", 0)
    hidden = status(accelerators=("", 3))
    assert hidden.accelerators is None
    assert signal(hidden, "accelerators").state == "unknown"


def test_functions_on_the_bus_are_told_with_what_is_not_known():
    found = status(accelerators=FUNCTIONS)
    nvidia, undriven, hygon = found.accelerators
    assert (nvidia.vendor, nvidia.link_speed, nvidia.link_width, nvidia.driver) == (
        "NVIDIA",
        "32.0 GT/s PCIe",
        16,
        "nvidia",
    )
    assert undriven.driver is None
    assert (hygon.vendor, hygon.link_speed, hygon.driver) == ("Hygon", None, "hydcu")
    assert signal(found, "accelerators").text == "2 NVIDIA, 1 Hygon"
    assert signal(found, "nvidia-smi").state == "unknown"


def test_the_vendors_tool_is_set_against_the_bus():
    found = status(accelerators=FUNCTIONS, nvidia_smi=DEVICES)
    assert [device.index for device in found.devices] == [0, 1]
    assert signal(found, "nvidia-smi").state == "ok"
    assert signal(found, "device 1 hw_thermal_slowdown").state == "warning"
    assert signal(found, "device 1 ecc_uncorrected").state == "critical"
    one = status(accelerators=FUNCTIONS, nvidia_smi=DEVICES.rpartition("\n")[0])
    assert (signal(one, "nvidia-smi").state, signal(one, "nvidia-smi").value) == ("critical", 1)


def test_an_answer_that_was_cut_loses_no_device():
    cut = status(accelerators=FUNCTIONS, nvidia_smi=(DEVICES.rpartition("\n")[0], 124))
    assert signal(cut, "nvidia-smi").state == "unknown"
    assert len(cut.devices) == 1


LOST = "Unable to determine the device handle for GPU0000:19:00.0: Unknown Error"


def test_one_lost_device_makes_the_others_unknown_and_not_lost():
    found = status(accelerators=FUNCTIONS, nvidia_smi=(LOST, 255))
    assert found.devices is None
    assert signal(found, "nvidia-smi").state == "critical"
    assert "0000:19:00.0" in signal(found, "nvidia-smi").text


def test_the_tool_on_a_node_without_device_is_no_fault():
    failure = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."
    assert signal(status(accelerators="", nvidia_smi=(failure, 9)), "nvidia-smi").state == "unknown"


@pytest.mark.parametrize(("answer", "words"), [(("", 75), "hangs"), (("", 124), "in time"), (("what?", 1), "what?")])
def test_a_tool_that_gave_no_answer_is_unknown_with_the_reason(answer, words):
    found = status(nvidia_smi=answer)
    assert found.devices is None
    assert signal(found, "nvidia-smi").state == "unknown"
    assert words in signal(found, "nvidia-smi").text


def test_a_missing_end_of_the_output_is_told():
    found = node_status({"load": section("load", "1 2 3")}, collected_at=NOW, source="test")
    assert signal(found, "collector").state == "unknown"
    assert "collector" not in {entry.check for entry in status().signals}
