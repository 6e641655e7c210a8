"""The table of suites: programs of other projects, their arguments, and the output that shows that they worked. The
tests of pyverbs are a suite, too. They are in pyverbs_suite.py, because each of their tests reports its own result."""
from cases import Case, Suite, UCX_WITH_VERBS

LOCAL = "127.0.0.1"
DEVICE = "mlx5_0"

# The words by which programs say that the device lacks a feature, and the feature.
NO_XRC = (r"Couldn't Open the XRC|Error opening XRC domain", "the device has no XRC")
NO_ODP = (r"The device isn't ODP capable|does not support On-Demand Paging", "the device has no on-demand paging")
NO_OPERATION = (r"does not support required .*-bit atomic|Unsupported operation",
                "the transport of UCX has not this operation")


def ibverbs_utils():
    yield Case("ibv_devices", ("ibv_devices",), prints=(r"^\s+mlx5_0\s+[0-9a-f]{16}$",), quick=True)
    yield Case("ibv_devinfo -v", ("ibv_devinfo", "-v"), quick=True,
               prints=(r"hca_id:\s+mlx5_0", r"state:\s+PORT_ACTIVE", r"link_layer:\s+InfiniBand", r"max_qp:\s+[1-9]"))
    yield Case("ibv_devinfo, two devices of two functions", ("ibv_devinfo",),
               options=("--devices", "2", "--functions", "2"), prints=(r"hca_id:\s+mlx5_0", r"hca_id:\s+mlx5_3"))
    pairs = {
        "ibv_rc_pingpong": ("", "-c", "-e -c", "-N -c", "-N -e -c", "-t -c", "-N -j -c", "-g 0 -c", "-s 1048576 -n 100",
                            "-o -c"),
        "ibv_uc_pingpong": ("", "-c", "-e -c", "-s 1048576 -n 100"),
        "ibv_ud_pingpong": ("", "-c", "-e -c", "-s 1"),
        "ibv_srq_pingpong": ("", "-c", "-e -c", "-q 1", "-s 65536 -n 100"),
        "ibv_xsrq_pingpong": ("",),
    }
    for program, variants in pairs.items():
        for words in variants:
            command = (program, "-d", DEVICE, "-p", "{port}", *words.split())
            yield Case(f"{program} {words}".strip(), command + (LOCAL,), servers=(command,),
                       prints=(r"\d+ iters in [\d.]+ seconds",), refuses=("invalid data",), quick=words == "-e -c",
                       lacking=(NO_XRC, NO_ODP) if program == "ibv_xsrq_pingpong" or words == "-o -c" else ())


def perftest():
    row = r"^ *{size} +\d+ +[\d.]+ +[\d.]+"
    common = {
        "write": ("-a -n 200", "-q 4 -s 4096 -n 500", "-c UC -a -n 200", "-s 65536 -b -n 500", "-s 64 -l 16 -n 1024",
                  "-s 64 -I 64 -n 1000", "-s 65536 -x 0 -n 500", "-s 65536 -m 256 -n 500",
                  "-s 4096 --use_old_post_send -n 500", "-s 8 --write_with_imm -n 500",
                  "-s 65536 --mr_per_qp -q 2 -n 500",
                  "-s 4096 -D 1", "-s 4096 --use-null-mr -n 500", "-s 4096 --odp -n 500", "-c DC -s 64 -n 100",
                  "-c DC -a -n 200", "-c DC -q 4 -s 4096 -n 500", "-c DC -s 65536 -b -n 500",
                  "-c DC -s 64 -I 64 -n 500",
                  "-c DC -s 64 -l 16 -n 1024", "-c DC -s 65536 -x 0 -n 500", "-c DC -s 4096 --log_dci_streams=3 -n 500",
                  "-c XRC -s 64 -n 100"),
        "read": ("-a -n 200", "-q 4 -s 4096 -n 500", "-s 65536 -b -n 500", "-s 4096 -o 4 -n 500",
                 "-c DC -a -n 200", "-c DC -s 4096 -o 4 -n 500"),
        "send": ("-a -n 200", "-q 4 -s 4096 -n 500", "-q 4 --use-srq -s 4096 -n 500", "-c UC -a -n 200",
                 "-c UD -s 2048 -n 1000", "-s 65536 -b -n 500", "-s 4096 -e -n 500", "-s 64 -l 16 -n 1024",
                 "-s 64 --recv_post_list=8 -n 1024", "-s 4096 -r 8 -n 500", "-c DC -a -n 200",
                 "-c DC -q 4 -s 4096 -n 500", "-c DC -s 65536 -b -n 500", "-c DC -s 4096 -e -n 500",
                 "-c DC -s 4096 -r 8 -n 500", "-c DC -s 4096 --log_dci_streams=3 -n 500"),
        "atomic": ("-A FETCH_AND_ADD -n 1000", "-A CMP_AND_SWAP -n 1000", "-A FETCH_AND_ADD -q 4 -n 500",
                   "-c DC -A FETCH_AND_ADD -n 500", "-c DC -A CMP_AND_SWAP -q 4 -n 500"),
    }
    latency = {
        "write": ("-a -n 200", "-s 8 -n 1000", "-c UC -a -n 200", "-s 8 --write_with_imm -n 500", "-c DC -a -n 200"),
        "read": ("-a -n 200", "-s 8 -e -n 500", "-c DC -a -n 200"),
        "send": ("-a -n 200", "-s 8 -e -n 500", "-s 8 --use-srq -n 500", "-c UC -s 4096 -n 500", "-c UD -s 2048 -n 500",
                 "-c UD -s 64 -e -n 500", "-c DC -a -n 200", "-c DC -s 8 -e -n 500"),
        "atomic": ("-A FETCH_AND_ADD -n 1000", "-A CMP_AND_SWAP -n 1000", "-c DC -A FETCH_AND_ADD -n 500"),
    }
    # For every size of -a these programs measure the clock of the processor for a quarter of a second.
    quick = {"ib_write_bw -a -n 200", "ib_read_lat -s 8 -e -n 500", "ib_send_bw -q 4 --use-srq -s 4096 -n 500",
             "ib_send_lat -c UD -s 2048 -n 500", "ib_atomic_bw -A FETCH_AND_ADD -n 1000",
             "ib_send_bw -c DC -s 65536 -b -n 500", "ib_read_bw -c DC -s 4096 -o 4 -n 500"}
    for kind, variants in (("bw", common), ("lat", latency)):
        for operation, lines in variants.items():
            for words in lines:
                name = f"ib_{operation}_{kind} {words}"
                command = (f"ib_{operation}_{kind}", "-d", DEVICE, "-F", "-p", "{port}", *words.split())
                size = r"8388608" if "-a" in words.split() else r"\d+"
                yield Case(name, command + (LOCAL,), servers=(command,), prints=(row.format(size=size),),
                           lacking=[entry for word, entry in (("XRC", NO_XRC), ("--odp", NO_ODP))
                                    if word in words.split()], quick=name in quick)


# In latency tests the processes wait for each other, so a turn takes as long as the scheduler takes. Even so there are
# more turns than a send queue holds.
def turns(test):
    return 500 if "_lat" in test else 2000


def ucx_uct():
    yield Case("ucx_info -d", ("ucx_info", "-d"), quick=True, refuses=(r"\bERROR\b",),
               prints=tuple(rf"Transport: {name}$"
                            for name in ("rc_verbs", "rc_mlx5", "dc_mlx5", "ud_verbs", "ud_mlx5")))
    tests = (("am_lat", "short bcopy zcopy", 8), ("am_bw", "short bcopy zcopy", 64),
             ("put_lat", "short bcopy zcopy", 8), ("put_bw", "short bcopy zcopy", 64), ("put_bw", "zcopy", 65536),
             ("get", "bcopy", 64), ("get", "zcopy", 4096),
             *((test, "", size) for test in ("add_lat", "add_mr", "fadd", "swap", "cswap") for size in (8, 4)))
    for transport in ("rc_mlx5", "dc_mlx5", "rc_verbs", "ud_mlx5", "ud_verbs"):
        for test, layouts, size in tests:
            if transport.startswith("ud") and not test.startswith("am_"):
                continue  # datagrams have only active messages
            for layout in layouts.split() or ("",):
                words = f"-t {test} -s {size} -n {turns(test)} -w 20" + (f" -D {layout}" if layout else "")
                yield uct_case(transport, words, quick=test == "am_lat" and layout == "short")
    for settings in DC_SETTINGS:
        for words in ("-t am_bw -s 64 -n 2000 -D short", "-t put_bw -s 65536 -n 500 -D zcopy", "-t fadd -s 8 -n 500"):
            if "DEVX=n" not in settings or "fadd" not in words:  # a defect of UCX, see docs/softhca.md
                yield uct_case("dc_mlx5", words, False, dict([settings.split("=")]))


# How the transport chooses initiators, addresses its targets, receives, and makes both ends.
DC_SETTINGS = ("UCX_DC_MLX5_TX_POLICY=dcs", "UCX_DC_MLX5_TX_POLICY=dcs_hybrid", "UCX_DC_MLX5_TX_POLICY=rand",
               "UCX_DC_MLX5_TX_POLICY=hw_dcs", "UCX_IB_IS_GLOBAL=y", "UCX_DC_MLX5_RX_INLINE=64",
               "UCX_DC_MLX5_SRQ_TOPO=cyclic", "UCX_IB_MLX5_DEVX_OBJECTS=dct", "UCX_IB_MLX5_DEVX_OBJECTS=dci",
               "UCX_IB_MLX5_DEVX=n")


def uct_case(transport, words, quick, env=None):
    command = ("ucx_perftest", "-P", "0", "-p", "{port}", "-d", f"{DEVICE}:1", "-x", transport, *words.split())
    settings = "".join(f"{name}={value} " for name, value in (env or {}).items())
    return Case(f"{settings}{transport} {words}", ("ucx_perftest", LOCAL) + command[1:], servers=(command,),
                quick=quick, env=env or {}, prints=(r"^Final:",), refuses=(r"\bERROR\b.*", r"\bWARN\b.*"),
                lacking=(NO_OPERATION,))


def ucx_ucp():
    sizes = ("8", "2000", "65536", "1048576")
    words = [f"-t {test} -s {size} -n {turns(test) if int(size) <= 2000 else 200} -w 20"
             for test in ("tag_lat", "tag_bw", "ucp_am_lat", "ucp_am_bw", "ucp_put_lat", "ucp_put_bw", "ucp_get")
             for size in sizes]
    words += [f"-t {test} -s {size} -n 2000 -w 20" for test in ("ucp_fadd", "ucp_cswap", "ucp_swap", "ucp_add")
              for size in (4, 8)]
    words += ["-t tag_sync_lat -s 8 -n 500 -w 20", "-t stream_lat -s 64 -n 500 -w 20", "-t stream_bw -s 65536 -n 200",
              "-t tag_lat -D iov -i 4096 -s 8,1000,2000 -n 500", "-t tag_bw -D iov,iov -i 70000 -s 65536,65536 -n 100",
              "-t ucp_am_bw -s 65536 -n 500 -e", "-t tag_lat -s 8 -n 500 -E sleep", "-t tag_bw -s 65536 -n 500 -z",
              "-t tag_bw -s 8 -n 2000 -T 2 -M multi", "-t tag_lat -s 8 -n 500 -C -U",
              "-t ucp_fadd -m host,rdma -s 8 -O16 -n 2000 -w 20", "-t ucp_put_lat -m host,rdma -s 8 -n 500 -w 20",
              "-t ucp_put_bw -m host,rdma -s 4096 -n 2000 -w 20", "-t ucp_get -m host,rdma -s 4096 -n 2000 -w 20"]
    quick = {"-t tag_bw -s 1048576 -n 200 -w 20", "-t ucp_am_lat -s 8 -n 500 -w 20", "-t ucp_fadd -s 8 -n 2000 -w 20",
             "-t ucp_put_lat -s 2000 -n 500 -w 20", "-t ucp_fadd -m host,rdma -s 8 -O16 -n 2000 -w 20"}
    for line in words:
        yield ucp_case("rc", line, quick=line in quick)
    for line in words:
        yield ucp_case("dc", line, quick=line == "-t tag_bw -s 1048576 -n 200 -w 20")
    for transports in ("rc_v", "rc_x", "dc_x", "ib", "ud", "ud_v", "ud_x"):
        for line in ("-t tag_lat -s 8 -n 500 -w 20", "-t tag_bw -s 65536 -n 200 -w 20", "-t ucp_put_bw -s 4096 -n 500",
                     "-t ucp_fadd -s 8 -n 500"):
            yield ucp_case(transports, line)
    yield ucp_case("rc", "-t tag_bw -s 65536 -n 200", more={"UCX_PROTO_ENABLE": "n"})
    yield ucp_case("rc", "-t ucp_fadd -s 8 -n 200", more={"UCX_PROTO_ENABLE": "n"})
    for scheme in ("get_zcopy", "put_zcopy", "am"):
        yield ucp_case("rc", "-t tag_bw -s 1048576 -n 200", more={"UCX_RNDV_SCHEME": scheme})
    yield ucp_case("", "-t tag_bw -s 65536 -n 200")  # all transports that UCX finds
    for policy in ("dcs", "rand", "hw_dcs", "dcs_hybrid"):
        yield ucp_case("dc", "-t tag_bw -s 65536 -n 200", more={"UCX_DC_MLX5_TX_POLICY": policy})
    yield ucp_case("dc", "-t ucp_fadd -s 8 -n 200", more={"UCX_PROTO_ENABLE": "n"})
    # What UCX chooses on a large cluster: without its settings, for that many endpoints.
    for transports in ("", "ib"):
        for line in ("-t tag_bw -s 65536 -n 200", "-t ucp_put_bw -s 65536 -n 200"):
            yield ucp_case(transports, line, more={"UCX_NUM_EPS": "1000", "UCX_LOG_LEVEL": "info"},
                           prints=(r"cfg#0 .*dc_mlx5/mlx5_0:1",))


def ucp_case(transports, words, quick=False, more=None, prints=()):
    env = dict(more or {})
    if transports:
        env["UCX_TLS"] = transports
    settings = " ".join(f"{name}={value}" for name, value in env.items())
    command = ("ucx_perftest", "-P", "0", "-p", "{port}", *words.split())
    return Case(f"{settings} {words}".strip(), ("ucx_perftest", LOCAL) + command[1:], servers=(command,), env=env,
                quick=quick, prints=(r"^Final:", *prints), refuses=(r"\bERROR\b.*", r"\bWARN\b.*"))


def ucx_exported_memory():
    # In a process that forks, UCX must not start the thread of its virtual file system: see docs/limits.md.
    rc = {"UCX_TLS": "rc", "UCX_VFS_ENABLE": "n"}
    for name, devices in (("one device, two functions", "mlx5_0:1 mlx5_1:1 mlx5_0:1"),
                          ("one function", "mlx5_0:1 mlx5_0:1 mlx5_0:1")):
        for umr in "yn":
            yield Case(f"{name}, UCX_IB_XGVMI_UMR_ENABLE={umr}", ("{bin}/exported_memory", *devices.split()),
                       options=("--functions", "2"), env={**rc, "UCX_IB_XGVMI_UMR_ENABLE": umr}, quick=umr == "y",
                       prints=(r"^exported memory: all bytes right",), refuses=(r"\bERROR\b.*", r"\bWARN\b.*"))

    # The stock way to use exported memory: each of the two processes of ucx_perftest hands its buffers to a daemon on
    # another function, and the daemons transfer between them. The daemons find each other by IP address, so UCX must be
    # allowed to use that interface, if only for this.
    env = {**rc, "UCX_TLS": "rc,tcp", "UCX_NET_DEVICES": "mlx5_0:1,lo"}
    daemon = ("env", "UCX_NET_DEVICES=mlx5_1:1,lo", "ucx_perftest_daemon", "-p")
    for size in (65536, 1048576):
        yield Case(f"ucx_perftest_daemon -s {size}", options=("--functions", "2"), env=env,
                   servers=(daemon + ("{port}",), daemon + ("{port1}",), ("ucx_perftest", "-P", "0", "-p", "{port2}")),
                   command=("ucx_perftest", LOCAL, "-P", "0", "-p", "{port2}", "-t", "ucp_am_bw", "-s", str(size), "-n",
                            "500", "-w", "20", "-g", f"{LOCAL}:{{port}}", "-G", f"{LOCAL}:{{port1}}"),
                   prints=(r"^Final:",), refuses=(r"\bERROR\b.*", r"\bWARN\b.*"))


# A program of our own, because ucx_perftest does not look at values. The counts show that the device does all
# operations.
def ucx_atomics():
    counts = {"4": {"masked_fa": 100, "masked_cs": 150}, "8": {"fa": 50, "cs": 25, "masked_fa": 50, "masked_cs": 125}}
    for size, wqes in counts.items():
        executed = tuple(rf'"atomic_{name}": {{\s+"count": {count},\s+"failed": 0' for name, count in wqes.items())
        for protocols in "yn":
            yield Case(f"UCX_PROTO_ENABLE={protocols} remote_atomics {size}", ("{bin}/remote_atomics", size),
                       options=("--stats", "-"), quick=True,
                       env={"UCX_TLS": "rc_x", "UCX_PROTO_ENABLE": protocols, "UCX_VFS_ENABLE": "n"},
                       prints=(r"^remote atomics: 250 right$", *executed),
                       refuses=(r"\bERROR\b.*", r"\bWARN\b.*"))


def open_mpi():
    base = ("mpirun", "--allow-run-as-root", "--oversubscribe", "--mca", "pml", "ucx", "--mca", "osc", "ucx")
    for transports in ("rc", "rc,self", "rc,self,sm", "dc", "dc,self", "ud,self"):
        yield Case(f"4 ranks, UCX_TLS={transports}", base + ("-n", "4", "{bin}/mpi_exchange"),
                   env={"UCX_TLS": transports}, quick=transports == "rc", prints=(r"^4 ranks, \d+ exchanges right$",),
                   refuses=(r"\bERROR\b.*", r"\bWARN\b.*"), timeout_s=180)


SUITES = (
    Suite("ibverbs-utils", ("ibv_devices", "ibv_devinfo", "ibv_rc_pingpong"), tuple(ibverbs_utils())),
    Suite("perftest", ("ib_write_bw",), tuple(perftest())),
    Suite("uct", ("ucx_info", "ucx_perftest", UCX_WITH_VERBS), tuple(ucx_uct())),
    Suite("ucp", ("ucx_perftest", UCX_WITH_VERBS), tuple(ucx_ucp())),
    Suite("exported-memory", ("ucx_perftest", UCX_WITH_VERBS), tuple(ucx_exported_memory())),
    Suite("atomics", ("ucx_perftest", UCX_WITH_VERBS), tuple(ucx_atomics())),
    Suite("openmpi", ("mpirun", UCX_WITH_VERBS), tuple(open_mpi())),
)
