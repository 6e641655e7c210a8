// A program that allocates memory, as programs do, and checks what it gets. It knows nothing of the heap, which the
// tests preload; only from /proc it learns which memory is in a file.
//
// usage: heap_calls CASE; ends with status 0, or says what is wrong
#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <thread>
#include <vector>

#include <alloca.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

namespace
{

constexpr std::size_t kb = 1024, mb = 1024 * kb, page = 4096;

[[noreturn, gnu::format(printf, 1, 2)]] void fail(const char* format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    std::vfprintf(stderr, format, arguments);
    va_end(arguments);
    std::fprintf(stderr, " (errno: %s)\n", std::strerror(errno));
    std::exit(1);
}

#define CHECK(condition) ((condition) ? void() : fail("line %d: %s", __LINE__, #condition))

// Whether the address is in a shared mapping of the heap's file.
bool is_shared(const void* address)
{
    std::FILE* const maps = std::fopen("/proc/self/maps", "re");
    char line[512];
    bool found = false;
    while (std::fgets(line, sizeof(line), maps) != nullptr) {
        unsigned long first = 0, last = 0;
        char access[5]{};
        std::sscanf(line, "%lx-%lx %4s", &first, &last, access);
        const auto at = reinterpret_cast<std::uintptr_t>(address);
        found =
            found || (first <= at && at < last && access[3] == 's' && std::strstr(line, "ucx_layout_heap") != nullptr);
    }
    std::fclose(maps);
    return found;
}

char* filled(void* memory, std::size_t length, int with)
{
    CHECK(memory != nullptr);
    std::memset(memory, with, length);
    return static_cast<char*>(memory);
}

bool holds(const char* memory, std::size_t length, int value)
{
    for (std::size_t i = 0; i < length; ++i) {
        if (memory[i] != static_cast<char>(value)) {
            return false;
        }
    }
    return true;
}

std::size_t alignment_of(const void* memory)
{
    return reinterpret_cast<std::uintptr_t>(memory) & -reinterpret_cast<std::uintptr_t>(memory);
}

// The compiler may not leave out what it thinks nobody needs.
template <typename Type>
Type* opaque(Type* pointer)
{
    asm volatile("" : "+r"(pointer) : : "memory");
    return pointer;
}

void all_functions()
{
    std::vector<void*> all;
    const auto add = [&](void* memory, std::size_t alignment) {
        CHECK(is_shared(filled(opaque(memory), mb, 1)));
        CHECK(alignment_of(memory) >= alignment);
        CHECK(malloc_usable_size(memory) >= mb);
        all.push_back(memory);
    };
    void* aligned = nullptr;
    add(std::malloc(mb), 16);
    add(std::calloc(1024, 1024), 16);
    add(std::realloc(nullptr, mb), 16);
    add(reallocarray(nullptr, 1024, 1024), 16);
    add(std::aligned_alloc(64, mb), 64);
    CHECK(posix_memalign(&aligned, 64 * kb, mb) == 0);
    add(aligned, 64 * kb);
    add(memalign(256 * kb, mb), 256 * kb);
    add(valloc(mb), page);
    add(pvalloc(mb - 5), page);
    for (void* const each : all) {
        std::free(each);
    }
    auto* const numbers = opaque(new double[mb]);
    CHECK(is_shared(numbers));
    delete[] numbers;
    struct alignas(128) wide {
        char bytes[mb];
    };
    auto* const over_aligned = opaque(new wide);
    CHECK(is_shared(over_aligned) && alignment_of(over_aligned) >= 128);
    delete over_aligned;
}

void small_blocks()
{
    CHECK(!is_shared(std::malloc(100 * kb)));
    CHECK(!is_shared(std::calloc(10, 10)));
    CHECK(malloc_usable_size(std::malloc(24)) >= 24);
    CHECK(malloc_usable_size(nullptr) == 0);
    std::free(nullptr);
    CHECK(is_shared(std::malloc(128 * kb)));
}

// What the C library promises for arguments that are none.
void wrong_arguments()
{
    void* memory       = &memory;
    volatile auto most = SIZE_MAX;
    errno              = 0;
    CHECK(std::malloc(most) == nullptr && errno == ENOMEM);
    errno = 0;
    CHECK(std::calloc(most / 2, 4) == nullptr && errno == ENOMEM);
    errno = 0;
    CHECK(reallocarray(nullptr, most / 2, 4) == nullptr && errno == ENOMEM);
    CHECK(posix_memalign(&memory, 24, mb) == EINVAL && memory == &memory);
    CHECK(posix_memalign(&memory, 64, most - 100) == ENOMEM && memory == &memory);
    errno = 0;
    CHECK(std::aligned_alloc(most / 2, 100) == nullptr && errno != 0);
    errno = 0;
    CHECK(pvalloc(most) == nullptr && errno == ENOMEM);
    char* const block = filled(std::malloc(mb), mb, 3);
    CHECK(std::realloc(block, most) == nullptr);
    CHECK(holds(block, mb, 3));
    errno = 77;
    std::free(block);
    CHECK(errno == 77);
    void* const huge_alignment = opaque(std::aligned_alloc(4 * mb, 8 * mb));
    CHECK(alignment_of(huge_alignment) >= 4 * mb);
    std::free(huge_alignment);
}

// From small to large and back, in place and not, with other blocks around.
void resizing()
{
    std::uint64_t random = 1;
    std::vector<std::pair<char*, std::size_t>> all(20);
    for (int step = 0; step < 800; ++step) {
        random                   = random * 6364136223846793005u + 1442695040888963407u;
        auto& [block, length]    = all[(random >> 40) % all.size()];
        const int value          = static_cast<int>((reinterpret_cast<std::uintptr_t>(&block) >> 4) & 0x7f);
        const std::size_t longer = 1 + (random >> 33) % ((random >> 60) == 0 ? 20 * mb : 400 * kb);
        CHECK(length == 0 || holds(block, length, value));
        block = static_cast<char*>(std::realloc(block, longer));
        CHECK(block != nullptr && malloc_usable_size(block) >= longer);
        CHECK(holds(block, std::min(length, longer), value));
        length = longer;
        std::memset(block, value, length);
    }
    for (const auto& each : all) {
        std::free(each.first);
    }
}

void zeroed()
{
    for (int step = 0; step < 200; ++step) {
        const std::size_t length = mb + static_cast<std::size_t>(step % 7) * 300 * kb;
        auto* const block        = static_cast<char*>(opaque(std::calloc(length, 1)));
        CHECK(holds(block, length, 0));
        std::memset(block, 9, length);
        std::free(block);
    }
}

std::size_t kilobytes(const char* name)
{
    std::FILE* const status = std::fopen("/proc/self/status", "re");
    char line[256];
    std::size_t found = 0;
    while (std::fgets(line, sizeof(line), status) != nullptr) {
        if (std::strncmp(line, name, std::strlen(name)) == 0) {
            found = std::strtoull(line + std::strlen(name), nullptr, 10);
        }
    }
    std::fclose(status);
    return found;
}

// Not at once, but while the program goes on.
void given_back()
{
    std::free(filled(std::malloc(100 * mb), 100 * mb, 1));
    for (int step = 0; step < 60 && kilobytes("RssShmem:") > 50 * kb; ++step) {
        usleep(100000);
        for (int i = 0; i < 1000; ++i) {
            std::free(opaque(std::malloc(mb)));
        }
    }
    CHECK(kilobytes("RssShmem:") < 50 * kb);
}

void threads()
{
    std::atomic<bool> is_right{true};
    std::vector<std::thread> all;
    std::atomic<char*> passed{nullptr}; // blocks are freed by other threads than those that allocate them
    for (unsigned number = 1; number <= 4; ++number) {
        all.emplace_back([&, number] {
            for (unsigned step = 0; step < 1500; ++step) {
                const std::size_t length = 128 * kb + (step * number * 7919) % mb;
                char* block              = filled(std::malloc(length), 128 * kb, static_cast<int>(number));
                if (step % 5 == 0) {
                    block = static_cast<char*>(std::realloc(block, length + mb));
                }
                if (!holds(block, 128 * kb, static_cast<int>(number))) {
                    is_right = false;
                }
                std::free(passed.exchange(block));
            }
        });
    }
    for (std::thread& each : all) {
        each.join();
    }
    CHECK(is_right);
}

// With UCX_LAYOUT_HEAP_LIMIT=64m
void exhausted()
{
    char* const first  = filled(std::malloc(20 * mb), 20 * mb, 1);
    char* const second = filled(std::malloc(100 * mb), 100 * mb, 2);
    CHECK(is_shared(first) && !is_shared(second));
    char* const third = static_cast<char*>(std::realloc(first, 90 * mb));
    CHECK(!is_shared(third) && holds(third, 20 * mb, 1));
    std::free(second);
    std::free(third);
    std::vector<char*> all;
    for (int i = 0; i < 200; ++i) {
        all.push_back(filled(std::malloc(mb), mb, i));
    }
    for (int i = 0; i < 200; ++i) {
        CHECK(holds(all[static_cast<std::size_t>(i)], mb, i));
        std::free(all[static_cast<std::size_t>(i)]);
    }
}

void plain()
{
    for (int i = 0; i < 20; ++i) {
        char* const block = filled(std::malloc(mb), mb, 1);
        CHECK(!is_shared(block));
        std::free(block);
    }
}

int wait_for(pid_t child)
{
    int status = -1;
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    return status;
}

void forks()
{
    char* const block = filled(std::malloc(5 * mb), 5 * mb, 1);
    char* const freed = filled(std::malloc(3 * mb), 3 * mb, 2);
    auto* const clear = static_cast<char*>(std::calloc(40 * mb, 1)); // nobody has touched it
    int to_child[2], to_parent[2];
    char go = 0;
    CHECK(pipe(to_child) == 0 && pipe(to_parent) == 0);
    const pid_t child = fork();
    if (child == 0) {
        CHECK(read(to_child[0], &go, 1) == 1); // the parent has changed everything
        CHECK(!is_shared(block) && holds(block, 5 * mb, 1) && holds(freed, 3 * mb, 2) && holds(clear, 40 * mb, 0));
        std::memset(block, 7, 5 * mb);
        std::memset(clear, 7, 40 * mb);
        std::free(freed);
        std::free(block);
        for (int i = 0; i < 100; ++i) {
            std::free(filled(std::malloc(static_cast<std::size_t>(1 + i % 9) * mb), mb, 7));
        }
        char* const own = filled(std::malloc(100 * mb), 100 * mb, 7); // the child's heap grows by itself
        CHECK(is_shared(own));
        const pid_t grandchild = fork();
        if (grandchild == 0) {
            CHECK(holds(own, 100 * mb, 7) && holds(clear, 40 * mb, 7));
            std::memset(own, 8, 100 * mb);
            std::exit(0);
        }
        CHECK(wait_for(grandchild) == 0 && holds(own, 100 * mb, 7));
        std::exit(0);
    }
    std::memset(block, 5, 5 * mb);
    std::memset(clear, 5, 40 * mb);
    std::free(freed);
    char* const next = filled(std::malloc(3 * mb), 3 * mb, 5);
    CHECK(write(to_child[1], &go, 1) == 1);
    CHECK(wait_for(child) == 0);
    CHECK(is_shared(block) && holds(block, 5 * mb, 5) && holds(clear, 40 * mb, 5) && holds(next, 3 * mb, 5));
}

// Other threads allocate all the time.
void forks_among_threads()
{
    std::atomic<bool> is_done{false};
    std::vector<std::thread> all;
    for (int number = 0; number < 3; ++number) {
        all.emplace_back([&] {
            for (unsigned step = 0; !is_done; ++step) {
                std::free(filled(std::malloc(128 * kb + step % 100 * 10 * kb), 128 * kb, 1));
            }
        });
    }
    char* const block = filled(std::malloc(mb), mb, 3);
    for (int step = 0; step < 60; ++step) {
        const pid_t child = fork();
        if (child == 0) {
            const bool is_right = holds(block, mb, 3);
            std::memset(block, 4, mb);
            for (int i = 0; i < 50; ++i) {
                std::free(filled(std::malloc(300 * kb), 300 * kb, 4));
            }
            _exit(is_right ? 0 : 1);
        }
        CHECK(wait_for(child) == 0 && holds(block, mb, 3));
    }
    is_done = true;
    for (std::thread& each : all) {
        each.join();
    }
}

// As memory behind an array is protected to find who writes there.
void protected_pages()
{
    void* made = nullptr;
    CHECK(posix_memalign(&made, page, mb) == 0);
    char* const block = filled(static_cast<char*>(made), mb, 1);
    CHECK(is_shared(block) && mprotect(block, page, PROT_NONE) == 0);
    const pid_t child = fork();
    if (child == 0) {
        CHECK(!is_shared(block) && holds(block + page, mb - page, 1));
        std::exit(0);
    }
    CHECK(wait_for(child) == 0);
    CHECK(mprotect(block, page, PROT_READ | PROT_WRITE) == 0 && holds(block, mb, 1));
    std::free(block);
}

// The only file that may not become shorter.
int descriptor_of_heap()
{
    int fd = 3;
    while (fd < 1024 && fcntl(fd, F_GET_SEALS) != F_SEAL_SHRINK) {
        ++fd;
    }
    return fd;
}

std::size_t allocated_bytes(int fd)
{
    struct stat status{};
    CHECK(fstat(fd, &status) == 0);
    return static_cast<std::size_t>(status.st_blocks) * 512;
}

// Nobody can read its file then, only its memory. The test keeps it under a number that the heap does not know.
void protected_pages_without_file()
{
    auto* const sparse = static_cast<char*>(opaque(std::calloc(300 * mb, 1)));
    CHECK(is_shared(sparse) && dup2(descriptor_of_heap(), STDIN_FILENO) == STDIN_FILENO);
    CHECK(close_range(3, ~0u, 0) == 0);
    sparse[200 * mb]         = 1;
    const std::size_t before = allocated_bytes(STDIN_FILENO);
    protected_pages();
    CHECK(before > 0 && allocated_bytes(STDIN_FILENO) < before + 10 * mb);
    const pid_t child = fork();
    if (child == 0) {
        CHECK(sparse[200 * mb] == 1 && sparse[100 * mb] == 0);
        std::exit(0);
    }
    CHECK(wait_for(child) == 0);
}

void sparse_fork()
{
    auto* const sparse = static_cast<char*>(opaque(std::calloc(256 * mb, 1)));
    for (std::size_t at = 0; at < 256 * mb; at += 2 * mb) {
        sparse[at] = 1;
    }
    const pid_t child = fork();
    if (child == 0) {
        CHECK(kilobytes("RssAnon:") < 10 * mb / kb);
        CHECK(sparse[0] == 1 && sparse[1] == 0 && sparse[254 * mb] == 1);
        std::exit(0);
    }
    CHECK(wait_for(child) == 0);
}

std::size_t used_addresses()
{
    std::size_t pages       = 0;
    std::FILE* const memory = std::fopen("/proc/self/statm", "re");
    CHECK(std::fscanf(memory, "%zu", &pages) == 1);
    std::fclose(memory);
    return pages * page;
}

void limit(decltype(RLIMIT_AS) resource, std::size_t length)
{
    const rlimit some{length, RLIM_INFINITY};
    CHECK(setrlimit(resource, &some) == 0);
}

void limit_addresses(std::size_t more)
{
    limit(RLIMIT_AS, used_addresses() + more);
}

// As programs do that know how much memory they may need: less than what the heap has reserved.
void forks_below_used_addresses()
{
    char* const block = filled(std::malloc(mb), mb, 1);
    limit(RLIMIT_AS, used_addresses() / 2);
    const pid_t child = fork();
    if (child == 0) {
        CHECK(!is_shared(block) && holds(block, mb, 1));
        std::free(filled(std::malloc(mb), mb, 2));
        std::exit(0);
    }
    CHECK(wait_for(child) == 0 && is_shared(block) && holds(block, mb, 1));
    CHECK(is_shared(filled(std::malloc(mb), mb, 1)));
    CHECK(!is_shared(filled(std::malloc(100 * mb), 100 * mb, 1)));
}

void grows_below_used_addresses()
{
    char* const block = filled(std::malloc(mb), mb, 1);
    limit(RLIMIT_AS, used_addresses() / 2);
    char* const grown = filled(std::malloc(100 * mb), 100 * mb, 2);
    CHECK(is_shared(block) && !is_shared(grown) && is_shared(filled(std::malloc(mb), mb, 1)));
}

void ends_by_fault(pid_t child)
{
    const int status = wait_for(child);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
}

// There is a copy, which the child may not map.
void forks_below_used_data()
{
    char* const block = filled(std::malloc(mb), mb, 1);
    limit(RLIMIT_DATA, 500 * kb);
    const pid_t child = fork();
    if (child == 0) {
        _exit(*opaque(block));
    }
    ends_by_fault(child);
    CHECK(holds(block, mb, 1));
}

// There are no addresses left for a copy, and none that the heap could give back.
void forks_without_addresses()
{
    char* const block = filled(std::malloc(mb), mb, 1);
    limit_addresses(16 * mb);
    int to_child[2];
    char go = 0;
    CHECK(pipe(to_child) == 0);
    const pid_t child = fork();
    if (child == 0) {
        CHECK(read(to_child[0], &go, 1) == 1); // the parent has written
        CHECK(!is_shared(block) && holds(block, mb, 1));
        for (int i = 0; i < 8; ++i) {
            CHECK(holds(static_cast<char*>(opaque(std::calloc(mb, 1))), mb, 0));
        }
        std::exit(0);
    }
    std::memset(block, 9, mb);
    for (int i = 0; i < 8; ++i) {
        filled(std::malloc(mb), mb, 9);
    }
    CHECK(write(to_child[1], &go, 1) == 1);
    CHECK(wait_for(child) == 0 && is_shared(block) && holds(block, mb, 9));
}

// Nor is there a file that could be copied.
void forks_without_addresses_and_file()
{
    char* const block = filled(std::malloc(mb), mb, 1);
    limit_addresses(16 * mb);
    CHECK(close_range(3, ~0u, 0) == 0);
    int to_parent[2];
    char sent = 0;
    CHECK(pipe(to_parent) == 0);
    const pid_t child = fork();
    if (child == 0) {
        std::free(filled(std::malloc(100 * kb), 100 * kb, 1));
        std::free(filled(std::malloc(mb), mb, 1));
        CHECK(!is_shared(std::realloc(filled(std::malloc(mb), mb, 1), 2 * mb)));
        CHECK(write(to_parent[1], "x", 1) == 1);
        _exit(*opaque(block));
    }
    ends_by_fault(child);
    CHECK(close(to_parent[1]) == 0 && read(to_parent[0], &sent, 1) == 1 && holds(block, mb, 1));
}

// The copy is made in a file, which takes the kernel longer than the time between two signals.
void forks_among_signals()
{
    constexpr std::size_t length = 40 * mb;
    char* const block            = filled(std::malloc(length), length, 1);
    struct sigaction nothing{};
    nothing.sa_handler = [](int) {};
    CHECK(sigaction(SIGALRM, &nothing, nullptr) == 0);
    const itimerval often{{0, 200}, {0, 200}}, never{};
    limit_addresses(mb);
    for (int step = 0; step < 15; ++step) {
        CHECK(setitimer(ITIMER_REAL, &often, nullptr) == 0);
        const pid_t child = fork();
        CHECK(setitimer(ITIMER_REAL, &never, nullptr) == 0);
        if (child == 0) {
            _exit(block[0] == 1 && block[length - 1] == 1 ? 0 : 1);
        }
        CHECK(wait_for(child) == 0);
    }
}

// The thread is to end at its next cancellation point, and fork() is none.
pid_t fork_in_cancelled_thread(const char* block)
{
    pid_t child = -1;
    int step    = 0;
    std::thread thread([&] {
        pthread_cancel(pthread_self());
        child = fork();
        if (child == 0) {
            _exit(*block == 1 ? 0 : 1);
        }
        step = 1;
        pthread_testcancel();
        step = 2;
    });
    thread.join();
    CHECK(step == 1 && is_shared(filled(std::malloc(mb), mb, 2)));
    return child;
}

// With a copy in memory, with one in a file, and with none.
void forks_of_cancelled_threads()
{
    char* const block = filled(std::malloc(mb), mb, 1);
    CHECK(wait_for(fork_in_cancelled_thread(block)) == 0);
    limit_addresses(16 * mb);
    CHECK(wait_for(fork_in_cancelled_thread(block)) == 0);
    CHECK(close_range(3, ~0u, 0) == 0);
    ends_by_fault(fork_in_cancelled_thread(block));
}

ucontext_t outside, fiber;
char* stack_of_fiber = nullptr;

// On the lowest pages of a fiber's stack.
pid_t fork_at_end_of_stack()
{
    char here = 0;
    if (stack_of_fiber != nullptr) {
        const auto left                                  = static_cast<std::size_t>(opaque(&here) - stack_of_fiber);
        *static_cast<char*>(opaque(alloca(left - page))) = 1;
    }
    return fork();
}

// What parent and child write into the variables of this function they must not write into each other's.
void fork_often()
{
    constexpr std::size_t length = 20 * kb;
    char local[length];
    for (int step = 0; step < 30; ++step) {
        filled(local, length, 1);
        pthread_mutex_t lock = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
        const pid_t child    = fork_at_end_of_stack();
        const int value      = child == 0 ? 2 : 3;
        CHECK(holds(local, length, 1) && is_shared(local) == (child != 0));
        filled(local, length, value);
        CHECK(pthread_mutex_lock(&lock) == 0 && lock.__data.__owner == gettid());
        if (child == 0) {
            _exit(holds(local, length, value) ? 0 : 1);
        }
        CHECK(wait_for(child) == 0 && holds(local, length, value) && is_shared(local));
        CHECK(pthread_kill(pthread_self(), 0) == 0);
    }
}

void run_fiber(char* stack, std::size_t length, void (*work)() = fork_often)
{
    CHECK(getcontext(&fiber) == 0);
    fiber.uc_stack.ss_sp   = stack;
    fiber.uc_stack.ss_size = length;
    fiber.uc_link          = &outside;
    makecontext(&fiber, work, 0);
    stack_of_fiber = stack;
    CHECK(swapcontext(&outside, &fiber) == 0);
    stack_of_fiber = nullptr;
}

void forks_on_a_block()
{
    auto* const stack = static_cast<char*>(std::malloc(256 * kb));
    run_fiber(stack, 256 * kb);
    std::free(stack);
    // The lowest pages of this one are used, and those below must not be touched.
    void* made = nullptr;
    CHECK(posix_memalign(&made, page, 256 * kb) == 0);
    auto* const guarded = static_cast<char*>(made);
    for (const int protection : {PROT_NONE, PROT_READ}) {
        CHECK(mprotect(guarded, 128 * kb, protection) == 0);
        run_fiber(guarded + 128 * kb, 40 * kb);
        errno = 0;
        CHECK(syscall(SYS_getrandom, guarded + 127 * kb, 1, 0) == -1 && errno == EFAULT);
    }
}

// The heap has kept some for such a stack.
void forks_on_a_block_without_addresses()
{
    run_fiber(static_cast<char*>(std::malloc(256 * kb)), 256 * kb, [] {
        limit_addresses(0);
        fork_often();
    });
}

// Its copy is lost, except for what was exchanged.
void forks_on_a_block_without_copy()
{
    run_fiber(static_cast<char*>(std::malloc(256 * kb)), 256 * kb, [] {
        limit_addresses(mb);
        CHECK(close_range(3, ~0u, 0) == 0);
        char far_above[64 * kb];
        const pid_t child = fork();
        if (child == 0) {
            _exit(*opaque(far_above + sizeof(far_above) - page));
        }
        ends_by_fault(child);
    });
}

// The C library puts its record of the thread there, too.
void* fork_in_thread(void* /*argument*/)
{
    fork_often();
    auto* const stack = static_cast<char*>(std::malloc(256 * kb));
    run_fiber(stack, 256 * kb);
    std::free(stack);
    CHECK(close_range(3, ~0u, 0) == 0);
    fork_often();
    return nullptr;
}

void forks_of_a_thread_on_a_block()
{
    void* stack = nullptr;
    pthread_attr_t attributes;
    pthread_t thread;
    CHECK(posix_memalign(&stack, page, mb) == 0 && pthread_attr_init(&attributes) == 0 &&
          pthread_attr_setstack(&attributes, stack, mb) == 0 &&
          pthread_create(&thread, &attributes, fork_in_thread, nullptr) == 0 && pthread_join(thread, nullptr) == 0);
    std::free(stack);
}

std::atomic<bool> is_fork_over{false};

// Near the top of its stack.
void* count(void* /*argument*/)
{
    volatile std::uint64_t counter[page] = {};
    for (std::uint64_t step = 1; !is_fork_over; ++step) {
        for (std::size_t i = 0; i < page; i += 32) {
            CHECK(counter[i] + 1 == step);
            counter[i] = step;
        }
    }
    return nullptr;
}

// Slices of one block, as pools of threads have them. What the lower thread writes is not lost.
void forks_beside_stacks()
{
    constexpr std::size_t length = 64 * kb;
    void* stacks                 = nullptr;
    pthread_attr_t attributes;
    CHECK(posix_memalign(&stacks, page, 2 * length) == 0 && pthread_attr_init(&attributes) == 0);
    const auto start = [&](std::size_t number, void* (*work)(void*)) {
        pthread_t thread{};
        CHECK(pthread_attr_setstack(&attributes, static_cast<char*>(stacks) + number * length, length) == 0);
        CHECK(pthread_create(&thread, &attributes, work, nullptr) == 0);
        return thread;
    };
    const pthread_t lower = start(0, count);
    const pthread_t upper = start(1, [](void*) -> void* {
        char used[44 * kb];
        filled(opaque(used), sizeof(used), 1);
        for (int step = 0; step < 400; ++step) {
            const pid_t child = fork();
            if (child == 0) {
                _exit(0);
            }
            CHECK(wait_for(child) == 0);
        }
        is_fork_over = true;
        return nullptr;
    });
    CHECK(pthread_join(upper, nullptr) == 0 && pthread_join(lower, nullptr) == 0);
    std::free(stacks);
}

// Another malloc is loaded, too, which knows nothing of our blocks.
void small_to_large()
{
    auto* block = filled(std::malloc(64 * kb), 64 * kb, 3);
    CHECK(malloc_usable_size(block) >= 64 * kb && malloc_usable_size(block) < 65 * kb);
    block = static_cast<char*>(std::realloc(block, mb));
    CHECK(is_shared(block) && holds(block, 64 * kb, 3));
    std::free(block);
}

// With UCX_LAYOUT_HEAP_LIMIT=32m
void small_limit()
{
    char* const first  = filled(std::malloc(10 * mb), 10 * mb, 1);
    char* const second = filled(std::malloc(30 * mb), 30 * mb, 2);
    CHECK(is_shared(first) && !is_shared(second));
}

// The first large block looks at files of the kernel.
void cancelled()
{
    std::atomic<int> step{0};
    char* block = nullptr;
    std::thread thread([&] {
        pthread_cancel(pthread_self());
        block = static_cast<char*>(std::malloc(mb));
        step  = 1;
        pthread_testcancel();
        step = 2;
    });
    thread.join();
    CHECK(step == 1 && is_shared(filled(block, mb, 1)));
    std::free(block);
}

// The first large block of all, in a thread with the smallest stack.
void small_stack()
{
    pthread_attr_t attributes;
    pthread_t thread;
    void* block = nullptr;
    CHECK(pthread_attr_init(&attributes) == 0 &&
          pthread_attr_setstacksize(&attributes, static_cast<std::size_t>(PTHREAD_STACK_MIN)) == 0);
    CHECK(pthread_create(&thread, &attributes, [](void*) { return std::malloc(mb); }, nullptr) == 0);
    CHECK(pthread_join(thread, &block) == 0 && is_shared(block));
    std::free(block);
}

// These have the parent's memory, or none of it.
void other_children()
{
    char* const block = filled(std::malloc(mb), mb, 1);
    char echo[] = "true", *arguments[] = {echo, nullptr};
    pid_t child = -1;
    CHECK(posix_spawnp(&child, "true", nullptr, nullptr, arguments, environ) == 0 && wait_for(child) == 0);
    CHECK(std::system("true") == 0);
    child = vfork();
    if (child == 0) {
        execvp("true", arguments);
        _exit(1);
    }
    CHECK(wait_for(child) == 0);
    CHECK(is_shared(block) && holds(block, mb, 1));
}

// As daemons do. The next file of the program may get the number of the heap's.
void closed_descriptors()
{
    char* const block = filled(std::malloc(mb), mb, 1);
    CHECK(close_range(3, ~0u, 0) == 0);
    std::vector<int> own;
    struct stat status{};
    for (int i = 0; i < 600; ++i) {
        own.push_back(memfd_create("of the program", 0));
        CHECK(own.back() >= 0 && write(own.back(), "x", 1) == 1);
    }
    char* const grown = filled(std::malloc(300 * mb), 300 * mb, 2);
    CHECK(is_shared(grown));
    const pid_t child = fork();
    if (child == 0) {
        CHECK(holds(block, mb, 1) && holds(grown, 300 * mb, 2));
        std::memset(block, 9, mb);
        std::exit(0);
    }
    CHECK(wait_for(child) == 0 && holds(block, mb, 1) && holds(grown, 300 * mb, 2));
    for (const int each : own) {
        CHECK(fstat(each, &status) == 0 && status.st_size == 1);
    }
}

// What the kernel's table has room for.
long room_for_descriptors()
{
    std::FILE* const status = std::fopen("/proc/self/status", "re");
    char line[512];
    long room = 0;
    while (std::fgets(line, sizeof(line), status) != nullptr) {
        std::sscanf(line, "FDSize: %ld", &room);
    }
    std::fclose(status);
    return room;
}

int highest_descriptor()
{
    int highest = 2;
    for (int fd = 3; fd < 1024; ++fd) {
        highest = fcntl(fd, F_GETFD) >= 0 ? fd : highest;
    }
    return highest;
}

// As UCX's constructor does; before the first block, if the test wants it.
struct early_thread {
    early_thread()
    {
        if (std::getenv("HEAP_CALLS_THREAD") != nullptr) {
            room_before = room_for_descriptors();
            std::thread(pause).detach();
        }
    }
    long room_before = 0;
};
early_thread before_blocks;

void high_descriptor()
{
    CHECK(highest_descriptor() >= 512);
}

// The kernel takes milliseconds for a larger table where threads may read the old one.
void descriptor_among_threads()
{
    const long room = before_blocks.room_before;
    CHECK(room > 0 && room_for_descriptors() == room);
    CHECK(highest_descriptor() >= room / 2);
}

// For the first large block of all.
void no_descriptors()
{
    rlimit before{};
    CHECK(getrlimit(RLIMIT_NOFILE, &before) == 0);
    const rlimit none{3, before.rlim_max};
    CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
    std::free(filled(std::malloc(mb), mb, 1));
    CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0);
}

// The heap may have begun, and cannot grow any more.
void short_files()
{
    const rlimit some{80 * mb, 80 * mb};
    char* const first = filled(std::malloc(mb), mb, 1);
    CHECK(is_shared(first) && setrlimit(RLIMIT_FSIZE, &some) == 0);
    char* const second = filled(std::malloc(100 * mb), 100 * mb, 2);
    CHECK(!is_shared(second) && holds(first, mb, 1));
    std::free(first);
    std::free(second);
}

// The file of a peer that maps all of it cannot become shorter.
void sealed()
{
    char* const block = filled(std::malloc(mb), mb, 1);
    CHECK(is_shared(block));
    int found = 0;
    for (int fd = 3; fd < 1024; ++fd) {
        const int seals = fcntl(fd, F_GET_SEALS);
        if (seals >= 0) {
            ++found;
            CHECK((seals & F_SEAL_SHRINK) != 0);
            CHECK(ftruncate(fd, 0) != 0);
        }
    }
    CHECK(found == 1);
}

// Before any other large block.
struct first_block {
    first_block()
    {
        const char* const name = std::getenv("HEAP_CALLS_FIRST");
        const std::string_view chosen(name == nullptr ? "" : name);
        if (chosen == "cancelled") {
            cancelled();
        } else if (chosen == "small_stack") {
            small_stack();
        } else if (chosen == "no_descriptors") {
            no_descriptors();
        }
    }
};
const first_block before_all;

// Each of the libraries' constructors, destructors and thread ends allocates, too.
struct early {
    early() : memory(filled(std::malloc(mb), mb, 1)) {}
    ~early()
    {
        std::free(memory);
        std::free(filled(std::malloc(mb), mb, 2));
    }
    char* memory;
};
early before_main;
thread_local early of_thread;

void early_and_late()
{
    CHECK(holds(before_main.memory, mb, 1));
    std::thread([] { CHECK(holds(of_thread.memory, mb, 1)); }).join();
    CHECK(dlsym(RTLD_DEFAULT, "no such symbol") == nullptr && dlerror() != nullptr);
    void* const opened = dlopen("libm.so.6", RTLD_NOW);
    CHECK(opened != nullptr && dlclose(opened) == 0);
}

// In a control group that allows 44 MB. The freed blocks lie between others, so what is allocated next does not fit
// there: 36 MB are in use at most, and 16 MB freed.
void limited()
{
    constexpr std::size_t longer = 2 * mb + mb / 2;
    for (int round = 0; round < 10; ++round) {
        char* blocks[16];
        for (char*& block : blocks) {
            block = filled(std::malloc(2 * mb), 2 * mb, 1);
        }
        for (int i = 0; i < 16; i += 2) {
            std::free(blocks[i]);
        }
        for (int i = 0; i < 16; i += 2) {
            blocks[i] = filled(std::malloc(longer), longer, 2);
        }
        for (int i = 0; i < 16; i += 2) {
            CHECK(is_shared(blocks[i]) && holds(blocks[i], longer, 2) && holds(blocks[i + 1], 2 * mb, 1));
        }
        for (char* const block : blocks) {
            std::free(block);
        }
    }
}

struct test_case {
    std::string_view name;
    void (*run)();
};

constexpr test_case cases[] = {
    {"all_functions", all_functions},
    {"small_blocks", small_blocks},
    {"wrong_arguments", wrong_arguments},
    {"resizing", resizing},
    {"zeroed", zeroed},
    {"given_back", given_back},
    {"limited", limited},
    {"threads", threads},
    {"exhausted", exhausted},
    {"plain", plain},
    {"forks", forks},
    {"forks_among_threads", forks_among_threads},
    {"protected_pages", protected_pages},
    {"protected_pages_without_file", protected_pages_without_file},
    {"sparse_fork", sparse_fork},
    {"forks_below_used_addresses", forks_below_used_addresses},
    {"grows_below_used_addresses", grows_below_used_addresses},
    {"forks_below_used_data", forks_below_used_data},
    {"forks_without_addresses", forks_without_addresses},
    {"forks_without_addresses_and_file", forks_without_addresses_and_file},
    {"forks_among_signals", forks_among_signals},
    {"forks_of_cancelled_threads", forks_of_cancelled_threads},
    {"forks_on_a_block", forks_on_a_block},
    {"forks_on_a_block_without_addresses", forks_on_a_block_without_addresses},
    {"forks_on_a_block_without_copy", forks_on_a_block_without_copy},
    {"forks_beside_stacks", forks_beside_stacks},
    {"forks_of_a_thread_on_a_block", forks_of_a_thread_on_a_block},
    {"small_to_large", small_to_large},
    {"small_limit", small_limit},
    {"other_children", other_children},
    {"closed_descriptors", closed_descriptors},
    {"high_descriptor", high_descriptor},
    {"descriptor_among_threads", descriptor_among_threads},
    {"short_files", short_files},
    {"sealed", sealed},
    {"early_and_late", early_and_late},
};

} // namespace

int main(int /*argc*/, char** argv)
{
    for (const test_case& each : cases) {
        if (each.name == argv[1]) {
            each.run();
            return 0;
        }
    }
    std::fprintf(stderr, "no case %s\n", argv[1]);
    return 2;
}
