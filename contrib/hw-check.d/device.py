"""What a device and its host are: the heading of a report. What is not readable is "unknown"."""
import glob
import os
import re
import subprocess

import commands

UNKNOWN = "unknown"
SOFTWARE_BOARD = "SOFTHCA"
PATIENCE = 60  # seconds, for one command

PCI_EXPRESS = 0x10         # number of the capability
DEVICE_CONTROL = 8         # its place in the capability
RELAXED_ORDERING = 1 << 4  # in device control: "enable relaxed ordering"


def read_line(path):
    try:
        with open(path, encoding="utf-8") as file:
            return file.read().strip() or UNKNOWN
    except OSError:
        return UNKNOWN


def output(command, env=None):
    try:
        return commands.run(command, PATIENCE, env=env).stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        return ""


class Device:
    def __init__(self, name, port):
        self.name = name
        self.folder = f"/sys/class/infiniband/{name}"
        self.port = f"{self.folder}/ports/{port}"

    @property
    def exists(self):
        return os.path.isdir(self.folder)

    @property
    def is_software(self):
        return read_line(f"{self.folder}/board_id").startswith(SOFTWARE_BOARD)

    def function(self):
        """Physical, virtual or subfunction. The device's folder is that of its PCI function, or of an auxiliary
        device of it."""
        place = os.path.realpath(f"{self.folder}/device")
        if "mlx5_core.sf." in place:
            return f"SF, {os.path.basename(place)}"
        if not os.path.exists(f"{self.folder}/device"):
            return UNKNOWN
        is_virtual = os.path.lexists(f"{self.folder}/device/physfn")
        return f"{'VF' if is_virtual else 'PF'}, {os.path.basename(place)}"

    def gids(self):
        found = []
        for path in sorted(glob.glob(f"{self.port}/gids/*"), key=lambda name: int(os.path.basename(name))):
            gid = read_line(path)
            if re.search("[1-9a-f]", gid.replace("fe80", "", 1)) and gid != UNKNOWN:
                kind = read_line(f"{self.port}/gid_attrs/types/{os.path.basename(path)}")
                found.append(f"{os.path.basename(path)} {gid} {'' if kind == UNKNOWN else kind}".rstrip())
        return found

    def pci_relaxed_ordering(self):
        """Whether the function may set "relaxed ordering" in its PCIe requests; only root can read this far."""
        try:
            with open(f"{self.folder}/device/config", "rb") as file:
                config = file.read(256)
        except OSError:
            return UNKNOWN
        at = config[0x34] if len(config) == 256 else 0
        seen = set()
        while at >= 0x40 and at not in seen:
            seen.add(at)
            if config[at] == PCI_EXPRESS:
                control = int.from_bytes(config[at + DEVICE_CONTROL:at + DEVICE_CONTROL + 2], "little")
                return "on" if control & RELAXED_ORDERING else "off"
            at = config[at + 1]
        return UNKNOWN


def rdma_core_version():
    """From the name of the library's file, libibverbs.so.1.MINOR.RELEASE.0."""
    for line in output(["ldconfig", "-p"]).splitlines() or output(["/sbin/ldconfig", "-p"]).splitlines():
        if "libibverbs.so.1 " in line and (found := re.search(
                r"\.so\.1\.\d+\.(\d+)", os.path.realpath(line.split("=>")[-1].strip()))):
            return found[1]
    return UNKNOWN


def heading(device, side, top, env):
    """The first lines of a report, as a dictionary."""
    versions = re.match(r"\S+ (\S+), UCX (\S+)", output(["ucx_layout_info", "--version"], env))
    commit = output(["git", "-C", top, "describe", "--always", "--dirty"])
    return {
        "device": f"{device.name} {read_line(device.folder + '/hca_type')}",
        "firmware": read_line(f"{device.folder}/fw_ver"),
        "psid": read_line(f"{device.folder}/board_id"),
        "function": device.function(),
        "link": f"{read_line(device.port + '/link_layer')}, {read_line(device.port + '/rate')}, "
                f"{read_line(device.port + '/state')}",
        "gids": device.gids(),
        "relaxed": f"PCI {device.pci_relaxed_ordering()}, "
                   f"UCX_IB_PCI_RELAXED_ORDERING={env.get('UCX_IB_PCI_RELAXED_ORDERING', '(not set)')}",
        "kernel": os.uname().release,
        "rdma-core": rdma_core_version(),
        "ucx": versions[2] if versions else UNKNOWN,
        "project": f"{versions[1] if versions else UNKNOWN} {commit}".rstrip(),
        "side": side,
    }


def print_heading(lines):
    for name, value in lines.items():
        print(f"{name:10} {'; '.join(value) if isinstance(value, list) else value}".rstrip())
