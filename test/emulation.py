"""What run-tests runs for a processor that this machine does not have, in an emulator (qemu-user).

Programs that need only the processor run whole. Of those that need a second process, tests of one transport run. Left
out is what an emulator cannot do or what says nothing about the processor: programs on the software device, whose
doorbells trap; tools, which libtool's scripts start; the scripts in test/checks.
"""
import collections
import os
import shutil

Job = collections.namedtuple("Job", "name program processor filter variables")


def job(program, processor="max", tests="*", label="", **variables):
    return Job(f"{program} {label}".strip(), program, processor, tests, variables)


# SVE has vectors of 16 to 256 bytes, and programs find out which. Its kernels run with several lengths; 48 is one that
# is no power of two.
NO_SVE = "max,sve=off,sme=off"
SVE_LENGTHS = (16, 32, 48, 64, 256)

JOBS = {
    "arm64": ("qemu-aarch64", [
        # The emulator says that it has filled huge pages, and has not.
        job("gtest_sys", tests="*-huge_pages.*"),
        job("gtest_ucs_layout"),
        job("gtest_ucs_pack", NO_SVE, label="(NEON)"),
        *(job("gtest_ucs_pack", f"max,sve-default-vector-length={length}", "*-*generic*:*neon*",
              label=f"(SVE {length * 8})") for length in SVE_LENGTHS),
        # The emulator lets a process have more memory than its limit says, and cannot execute itself again.
        job("gtest_ucs_window", tests="*-arena_test.address_space_limit*:registry_death_test.*:huge_memory.is_*:"
            "registry_threads.second_thread_of_a_process*"),
        job("gtest_prm"),
        job("gtest_uct_abi"),
        job("gtest_uct_mlx5_layout"),
        job("gtest_softhca_core"),
        job("gtest_softhca_shim", tests="store_aarch64.*"),
        # It has none of the calls by which a process reaches memory of another one, and thousands of windows take it
        # longer than a pair of peers may take.
        job("gtest_ucp_two_process", tests="*/posix_v2-*process_memory*:*shared_memory*:*two_thousand_at_once*"),
    ]),
}


def missing_emulator(arch):
    """The name of the emulator, if it is not installed."""
    emulator = JOBS[arch][0]
    return None if shutil.which(emulator) else emulator


def jobs(arch, build):
    """(name, command, variables) for each job. libtool's scripts are for this machine, so what they start is run."""
    emulator = shutil.which(JOBS[arch][0])
    for each in JOBS[arch][1]:
        behind_libtool = os.path.join(build, ".libs", each.program)
        program = behind_libtool if os.path.exists(behind_libtool) else os.path.join(build, each.program)
        prefix = [emulator, "-cpu", each.processor]
        # The programs that a test starts need the emulator, too.
        variables = dict(each.variables, UCXL_TEST_EMULATOR=" ".join(prefix))
        yield each.name, prefix + [program, f"--gtest_filter={each.filter}"], variables
