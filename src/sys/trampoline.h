// Functions that jump to where a pointer says, with whatever arguments they got. No compiler can write these without
// knowing the arguments, and a table of functions that are found at run time has hundreds of signatures.
//
//     UCXL_TRAMPOLINE(ucp_mem_map, "ucxl_pointer_ucp_mem_map", UCXL_HIDDEN)
//
// defines ucp_mem_map(), which jumps to the address in the variable of this assembler name.
#pragma once

#if defined(__x86_64__)
#define UCXL_JUMP(pointer)                                                                                             \
    "endbr64\n\t"                                                                                                      \
    "jmp *" pointer "(%rip)\n\t"
#elif defined(__aarch64__)
#define UCXL_JUMP(pointer)                                                                                             \
    "hint #34\n\t" /* bti c */                                                                                         \
    "adrp x16, " pointer "\n\t"                                                                                        \
    "add x16, x16, :lo12:" pointer "\n\t"                                                                              \
    "ldr x16, [x16]\n\t"                                                                                               \
    "br x16\n\t"
#else
#error "write the jump for this processor"
#endif

#define UCXL_HIDDEN(name) ".hidden " #name "\n\t"
#define UCXL_EXPORTED(name)

#define UCXL_TRAMPOLINE(name, pointer, visibility)                                                                     \
    asm(".pushsection .text." #name ",\"ax\",%progbits\n\t"                                                            \
        ".balign 16\n\t"                                                                                               \
        ".globl " #name "\n\t" visibility(name) ".type " #name ", %function\n" #name                                   \
                                                ":\n\t" UCXL_JUMP(pointer) ".size " #name ", . - " #name "\n\t"        \
                                                                           ".popsection");
