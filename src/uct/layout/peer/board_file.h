// The file in which a process has its board (pass_board.h), and how peers find it: by the first bytes of the file of
// its records.
//
// Example: auto own = board_file::create(); auto peers = peer_board::open(pid, place);
#pragma once

#include "pass_board.h"

#include "sys/error.h"
#include "sys/fd.h"
#include "sys/magic.h"
#include "sys/mapping.h"
#include "sys/peer_file.h"
#include "sys/process.h"

#include <cstdint>
#include <memory>

namespace ucxl
{

struct board_place {
    static constexpr auto form = magic<std::uint64_t>("UCXBORD2");

    std::uint64_t magic; // form; 0: there is no board
    std::uint64_t inode;
    std::int64_t fd; // of the owner
};

// Of this process.
class board_file
{
public:
    // Errors: no_memory.
    static result<std::unique_ptr<board_file>> create();
    board_file(const board_file&)            = delete;
    board_file& operator=(const board_file&) = delete;

    board_place place() const { return {board_place::form, _inode, _file.get()}; }
    pass_board& board() const { return *reinterpret_cast<pass_board*>(_pages.start()); }
    // False in a child of fork(): it is the parent's.
    bool is_own() const { return _owner == own_pid(); }

private:
    board_file() = default;

    pid_t _owner = own_pid();

    owned_fd _file;
    owned_mapping _pages;
    std::uint64_t _inode = 0;
};

// Of another process.
class peer_board
{
public:
    // Errors: invalid_param (the place is that of no board), no_memory.
    static result<peer_board> open(pid_t owner, const board_place& place);

    pass_board& board() const { return *reinterpret_cast<pass_board*>(_pages.start()); }
    // Whether the owner is known to have it mapped no more, because it became another program (execve(2)). Descriptors
    // do not tell: a program may close all of them and go on.
    bool has_left_owner() const noexcept;

private:
    peer_board(pid_t owner, const board_place& place, owned_mapping pages)
        : _owner(owner), _place(place), _pages(std::move(pages))
    {
    }

    pid_t _owner;
    board_place _place;
    owned_mapping _pages;
};

} // namespace ucxl
