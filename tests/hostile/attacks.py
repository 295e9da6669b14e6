"""Runs inside the fence: tries one attack after the other and prints the names of those that succeeded.

`python attacks.py CANARIES PID PORT [ONLY]`: files that must not be seen, a process and a port of the host; outside the
fence it tries the harmless attacks that ONLY names, and no others.
"""

import ctypes
import ctypes.util
import fcntl
import glob
import os
import resource
import signal
import socket
import subprocess
import sys

CANARIES, PID, PORT = sys.argv[1].split(os.pathsep), int(sys.argv[2]), int(sys.argv[3])
ONLY = sys.argv[4].split(",") if len(sys.argv) > 4 else []
if not ONLY and (socket.gethostname() != "penstock" or not os.path.isdir("/product")):
    sys.exit("these attacks do harm where they succeed: they are tried behind the fence only")
LIBC = ctypes.CDLL(None, use_errno=True)
REACHED = []
NUMBERS = os.uname().machine == "x86_64"


def attack(name, act):
    if ONLY and name not in ONLY:
        return
    try:
        if act() is not False:
            REACHED.append(name)
    except Exception:
        return


def call(number, *arguments):
    """A system call by its number, refused or not."""
    if not NUMBERS:
        return False
    return LIBC.syscall(ctypes.c_long(number), *(ctypes.c_long(value) for value in arguments)) >= 0


def read(path):
    with open(path, "rb") as file:
        return len(file.read(16)) > 0


def write(path):
    with open(path, "ab") as file:
        file.write(b"#")


def folder_of_packages():
    return next(path for path in sys.path if "site" in path)


def in_child(act):
    """What only counts if a child can do it."""
    pid = os.fork()
    if pid == 0:
        try:
            os._exit(0 if act() is not False else 1)
        except BaseException:
            os._exit(1)
    return os.waitpid(pid, 0)[1] == 0


for canary in CANARIES:
    attack(f"read {canary}", lambda: read(canary))
    attack(f"write {canary}", lambda: write(canary))
    attack(f"list {canary}", lambda: os.path.basename(canary) in os.listdir(os.path.dirname(canary)))
    attack(f"read through /proc {canary}", lambda: read(f"/proc/1/root{canary}"))
    attack(f"link to {canary}", lambda: os.link(canary, "/out/linked"))
    attack(f"symlink to {canary}", lambda: os.symlink(canary, "/tmp/s") or read("/tmp/s"))

attack("password file of the host", lambda: b"root" in open("/etc/passwd", "rb").read())
attack("shadow file", lambda: read("/etc/shadow"))
attack("secret in the environment", lambda: any("canary" in value for value in os.environ.values()))
attack("environment of the first process", lambda: read("/proc/1/environ"))
attack("memory of the first process", lambda: read("/proc/1/mem"))
attack("descriptors of the first process", lambda: bool(os.listdir("/proc/1/fd")))
attack("processes of the host", lambda: os.path.exists(f"/proc/{PID}/environ") and read(f"/proc/{PID}/environ"))
attack("signal to the host's process", lambda: os.kill(PID, 0))
attack("signal to the first process", lambda: os.kill(1, signal.SIGKILL) or (os.getppid() == 1 and False))
attack("inherited descriptors", lambda: len(os.listdir("/proc/self/fd")) > 4)
attack("write to the interpreter", lambda: write(sys.executable))
attack("a .pth file", lambda: write(os.path.join(folder_of_packages(), "evil.pth")))
attack("write to the compiler", lambda: write("/product/penstock/__init__.py"))
attack("write beside the model", lambda: write("/model/more.py"))
attack("write into /", lambda: write("/evil"))
attack("write into /usr", lambda: write("/usr/lib/evil"))
attack("write into /etc", lambda: write("/etc/passwd"))
attack("kernel settings", lambda: write("/proc/sys/kernel/core_pattern"))
attack("score of the memory killer", lambda: open("/proc/self/oom_score_adj", "w").write("-1000") and None)
attack("unix socket", lambda: socket.socket(socket.AF_UNIX))
attack("network socket", lambda: socket.create_connection(("127.0.0.1", PORT), 1))
attack("name lookup", lambda: socket.getaddrinfo("localhost", 80) and socket.socket(socket.AF_INET))
attack("netlink", lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW))
attack("packet socket", lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW))
attack("socket pair", socket.socketpair)
attack("kernel's crypto socket", lambda: socket.socket(socket.AF_ALG, socket.SOCK_SEQPACKET))
attack("terminal", lambda: open("/dev/tty", "w"))
attack("memory device", lambda: read("/dev/mem"))
attack("disks", lambda: bool(glob.glob("/dev/[sv]d*") + glob.glob("/dev/nvme*")) and None)
attack("shared memory folder", lambda: write("/dev/shm/evil"))
attack("anonymous file", lambda: os.memfd_create("x"))
attack("watch what others open", lambda: LIBC.inotify_add_watch(LIBC.inotify_init(), b"/usr/lib", 0xFFF) >= 0)
attack("watches of the service's user", lambda: LIBC.inotify_init() >= 0 or LIBC.inotify_init1(0) >= 0)
attack("notice when others open files", lambda: fcntl.fcntl(os.open(folder_of_packages(), os.O_RDONLY), 1026, 1))
attack("the disk's cache written out", lambda: LIBC.syncfs(os.open(folder_of_packages(), os.O_RDONLY)) == 0)
attack("all caches written out", lambda: call(162))
attack("system V memory", lambda: LIBC.shmget(0, 4096, 0o1600) >= 0)
attack("message queue", lambda: LIBC.msgget(0, 0o1600) >= 0)
attack("trace a child", lambda: in_child(lambda: LIBC.ptrace(0, 0, 0, 0) == 0))
attack("another process's memory", lambda: call(310, 1, 0, 0, 0, 0, 0))
attack("new user namespace", lambda: LIBC.unshare(0x10000000) == 0)
attack("new mount namespace", lambda: LIBC.unshare(0x00020000) == 0)
attack("clone into a user namespace", lambda: NUMBERS and LIBC.syscall(56, 0x10000000 | 17, 0, 0, 0, 0) > 0)
attack("clone3", lambda: call(435, 0, 0))
attack("join a namespace", lambda: LIBC.setns(os.open("/proc/self/ns/mnt", 0), 0) == 0)
attack("mount", lambda: LIBC.mount(b"tmpfs", b"/tmp", b"tmpfs", 0, None) == 0)
attack("unmount", lambda: LIBC.umount2(b"/model", 2) == 0)
attack("remount for writing", lambda: LIBC.mount(None, b"/", None, 32 | 4096, None) == 0)
attack("change of root", lambda: os.chroot("/tmp"))
attack("handle of a file", lambda: call(304, -100, 0, 0))
attack("device node", lambda: os.mknod("/tmp/disk", 0o60666, os.makedev(8, 0)))
attack("pipe with a name in the outputs", lambda: os.mkfifo("/out/signature.json"))
attack("become root", lambda: os.setuid(0))
attack("become another group", lambda: os.setgroups([0]))
attack("a program with the root bit", lambda: any(map(os.path.exists, ("/usr/bin/sudo", "/bin/su", "/usr/bin/mount"))))
attack("a shell", lambda: subprocess.run(["/bin/sh", "-c", "exit 0"], check=True) and None)
attack("kernel module", lambda: call(175, 0, 0, 0) or call(313, 0, 0, 0))
attack("BPF", lambda: call(321, 0, 0, 0))
attack("performance counters", lambda: call(298, 0, 0, -1, -1, 0))
attack("io_uring", lambda: call(425, 1, 0))
attack("page faults by hand", lambda: call(323, 0))
attack("keyring", lambda: call(250, 0, -3, 0))
attack("log of the kernel", lambda: LIBC.klogctl(10, None, 0) >= 0)
attack("words into a terminal", lambda: fcntl.ioctl(1, 0x5412, b"x"))
attack("clock", lambda: LIBC.settimeofday(ctypes.create_string_buffer(16), None) == 0)
attack("name of the machine", lambda: LIBC.sethostname(b"evil", 4) == 0)
attack("higher priority", lambda: os.nice(-5))
attack("real-time priority", lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)))
attack("more files than allowed", lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (1 << 20, 1 << 20)))
attack("more processes than allowed", lambda: resource.setrlimit(resource.RLIMIT_NPROC, (1 << 20, 1 << 20)))
attack("32-bit calls", lambda: NUMBERS and call(0x40000000 | 39))
attack("the name of the machine outside", lambda: socket.gethostname() != "penstock")
attack("a user that exists", lambda: os.getuid() in (0, 65534))

print("reached:", ", ".join(REACHED) or "nothing")
