"""Host machine code of the callbacks, with the instructions it was assembled from beside it.

`engine.cpu.native` places it, tries it against its Python twins, and says what it means.
"""

from typing import Final

# bool fill(uc, vaddr, type, uc_tlb_entry *result, Control *control)
#   rdi          rsi    edx   rcx                   r8
# Binary search of the table for the region of vaddr; offsets are those of `ram.RamControl`. At
# `limit` misses it stops the emulator, which then gets a larger TLB.
FILL: Final = bytes.fromhex(
    "49ff4038"  # inc qword [r8+56]      fills++
    "4d8b08"  # mov r9, [r8]             hi = count
    "31c0"  # xor eax, eax               lo = 0
    "4d8b5008"  # mov r10, [r8+8]        table
    # next:
    "4c39c8"  # cmp rax, r9
    "0f83b4000000"  # jae fail
    "4e8d1c08"  # lea r11, [rax+r9]
    "49d1eb"  # shr r11, 1               middle
    "4c89df"  # mov rdi, r11
    "48c1e705"  # shl rdi, 5
    "4c01d7"  # add rdi, r10             its entry
    "483b37"  # cmp rsi, [rdi]
    "720c"  # jb left
    "483b7708"  # cmp rsi, [rdi+8]
    "720b"  # jb found
    "498d4301"  # lea rax, [r11+1]
    "ebd5"  # jmp next
    # left:
    "4d89d9"  # mov r9, r11
    "ebd0"  # jmp next
    # found:
    "8b4718"  # mov eax, [rdi+24]        permissions
    "4989ca"  # mov r10, rcx
    "8d4af0"  # lea ecx, [rdx-16]        READ, WRITE, FETCH are 16, 17, 18
    "41b901000000"  # mov r9d, 1
    "41d3e1"  # shl r9d, cl
    "4c89d1"  # mov rcx, r10
    "4485c8"  # test eax, r9d
    "7473"  # je fail
    "4989f1"  # mov r9, rsi
    "4c034f10"  # add r9, [rdi+16]       physical address
    "4d89ca"  # mov r10, r9
    "4d2b5030"  # sub r10, [r8+48]
    "49c1ea0c"  # shr r10, 12
    "4d035020"  # add r10, [r8+32]       its byte in `touched`
    "41803a00"  # cmp byte [r10], 0
    "750a"  # jne ok
    "49ff4828"  # dec qword [r8+40]      budget--
    "7848"  # js over
    "41c60201"  # mov byte [r10], 1
    # ok:
    "4d8b5868"  # mov r11, [r8+104]
    "4d85db"  # test r11, r11
    "7405"  # je unused                  nobody wants to know of uses
    "43c6041301"  # mov byte [r11+r10], 1
    # unused:
    "4d8b5860"  # mov r11, [r8+96]
    "4d85db"  # test r11, r11
    "7417"  # je done                    nobody wants to know of changes
    "4d01d3"  # add r11, r10             its byte of those
    "83fa11"  # cmp edx, 17
    "740b"  # je wrote
    "41803b00"  # cmp byte [r11], 0
    "7509"  # jne done
    "83e0fd"  # and eax, ~WRITE          a store asks again
    "eb04"  # jmp done
    # wrote:
    "41c60301"  # mov byte [r11], 1
    # done:
    "4c8909"  # mov [rcx], r9
    "894108"  # mov [rcx+8], eax
    "b801000000"  # mov eax, 1
    "4d8b4838"  # mov r9, [r8+56]
    "4d3b4848"  # cmp r9, [r8+72]        fills, limit
    "7335"  # jae much
    "c3"  # ret
    # over:
    "49ff4028"  # inc qword [r8+40]
    "ba63000000"  # mov edx, 99          OUT_OF_MEMORY
    # fail:
    "49897010"  # mov [r8+16], rsi
    "49895018"  # mov [r8+24], rdx
    "498b4040"  # mov rax, [r8+64]       hole
    "4885c0"  # test rax, rax
    "7419"  # je refuse
    "488901"  # mov [rcx], rax
    "4989ca"  # mov r10, rcx
    "8d4af0"  # lea ecx, [rdx-16]
    "b801000000"  # mov eax, 1
    "d3e0"  # shl eax, cl
    "41894208"  # mov [r10+8], eax
    "b801000000"  # mov eax, 1
    # refuse:
    "c3"  # ret
    # much:
    "53"  # push rbx               keeps the stack aligned
    "498b7850"  # mov rdi, [r8+80]
    "41ff5058"  # call [r8+88]           uc_emu_stop(uc)
    "b801000000"  # mov eax, 1
    "5b"  # pop rbx
    "c3"  # ret
)

# void block(uc, address, size, BlockClock *clock)
#   rdi            rsi      edx   rcx
# The clock's tick, see `tick`; at zero, or when `halted`, it stops the emulator before the block
# runs.
BLOCK: Final = bytes.fromhex(
    "4883795800"  # cmp qword [rcx+0x58], 0   halted
    "757f"  # jne stop
    "4889f0"  # mov rax, rsi
    "482b4130"  # sub rax, [rcx+0x30]       the machinery near the libraries
    "483b4138"  # cmp rax, [rcx+0x38]
    "7243"  # jb window
    "4889f0"  # mov rax, rsi
    "482b4140"  # sub rax, [rcx+0x40]       the machinery below the program
    "483b4148"  # cmp rax, [rcx+0x48]
    "7236"  # jb window
    "89d2"  # mov edx, edx
    "4801f2"  # add rdx, rsi
    "483b7120"  # cmp rsi, [rcx+0x20]       goes on where the last block ended?
    "7426"  # je follows
    "488b01"  # mov rax, [rcx]              remaining
    "4885c0"  # test rax, rax
    "7452"  # je stop
    "48ffc8"  # dec rax
    "488901"  # mov [rcx], rax
    "80796800"  # cmp byte [rcx+0x68], 0    keeps_branches
    "7412"  # je follows
    "488b4120"  # mov rax, [rcx+0x20]
    "488b7950"  # mov rdi, [rcx+0x50]       last_branches
    "4c8b07"  # mov r8, [rdi]
    "4c894708"  # mov [rdi+8], r8           the one before
    "488907"  # mov [rdi], rax
    # follows:
    "48895120"  # mov [rcx+0x20], rdx       expected
    "c3"  # ret
    # window:
    "488b01"  # mov rax, [rcx]
    "488b5118"  # mov rdx, [rcx+0x18]       aside
    "4801c2"  # add rdx, rax
    "483b7128"  # cmp rsi, [rcx+0x28]       a repeated string instruction?
    "7516"  # jne first
    "483b5160"  # cmp rdx, [rcx+0x60]       and nothing has ticked since?
    "7510"  # jne first
    "4885c0"  # test rax, rax
    "7414"  # je stop
    "48ffc8"  # dec rax
    "488901"  # mov [rcx], rax
    "48894160"  # mov [rcx+0x60], rax
    "c3"  # ret
    # first:
    "48897128"  # mov [rcx+0x28], rsi
    "48895160"  # mov [rcx+0x60], rdx
    "c3"  # ret
    # stop:
    "48ff4110"  # inc [rcx+0x10]            stops++
    "ff6108"  # jmp [rcx+0x8]               uc_emu_stop(uc)
)

# void pause(BlockClock *clock)
#            rdi
# Makes the next block stop as if its time was up; the rest is kept in `aside`.
PAUSE: Final = bytes.fromhex(
    "488b07"  # mov rax, [rdi]
    "4885c0"  # test rax, rax
    "740b"  # je already
    "48894718"  # mov [rdi+24], rax
    "48c70700000000"  # mov qword [rdi], 0
    # already:
    "c3"  # ret
)

# void edge(uc, uc_tb *current, uc_tb *previous, Sieve *sieve)
#   rdi         rsi             rdx              rcx
# Asks `sieve.ask`, with the same arguments, about a new block whose address has its bit in
# `sieve.entries`, and one that holds a suspect byte pair,
# ends in the first byte of one (decoding stops at what is no instruction), ends in a suspect
# byte and two more, the last above 0x7F, in a byte of another kind and one more, or goes over
# the end of its region.
EDGE: Final = bytes.fromhex(
    "4c8b01"  # mov r8, [rcx]           the RamControl
    "4d8b08"  # mov r9, [r8]            hi = count
    "4d8b5008"  # mov r10, [r8+8]       table
    "488b06"  # mov rax, [rsi]          pc of the block
    "488b5120"  # mov rdx, [rcx+0x20]   entries
    "4189c0"  # mov r8d, eax
    "4181e0ffff0f00"  # and r8d, 0xfffff
    "440fa302"  # bt [rdx], r8d
    "0f82b4000000"  # jb ask
    "4531db"  # xor r11d, r11d          lo = 0
    # next:
    "4d39cb"  # cmp r11, r9
    "0f83a8000000"  # jae ask
    "4b8d140b"  # lea rdx, [r11+r9]
    "48d1ea"  # shr rdx, 1              middle
    "4989d0"  # mov r8, rdx
    "49c1e005"  # shl r8, 5
    "4d01d0"  # add r8, r10             its entry
    "493b00"  # cmp rax, [r8]
    "720c"  # jb left
    "493b4008"  # cmp rax, [r8+8]
    "720b"  # jb found
    "4c8d5a01"  # lea r11, [rdx+1]
    "ebd5"  # jmp next
    # left:
    "4989d1"  # mov r9, rdx
    "ebd0"  # jmp next
    # found:
    "440fb74e0a"  # movzx r9d, word [rsi+0xa]size of the block
    "4a8d1408"  # lea rdx, [rax+r9]
    "493b5008"  # cmp rdx, [r8+8]
    "7772"  # ja ask
    "49034010"  # add rax, [r8+0x10]
    "48034108"  # add rax, [rcx+8]      its host address
    "4c8b5110"  # mov r10, [rcx+0x10]   pairs
    "0fb610"  # movzx edx, byte [rax]
    # pair:
    "49ffc9"  # dec r9
    "7e23"  # jle last
    "48ffc0"  # inc rax
    "c1e208"  # shl edx, 8
    "440fb600"  # movzx r8d, byte [rax]
    "4409c2"  # or edx, r8d             first * 256 + second
    "4189d3"  # mov r11d, edx
    "41c1eb05"  # shr r11d, 5
    "478b1c9a"  # mov r11d, [r10+r11*4]
    "410fa3d3"  # bt r11d, edx
    "7240"  # jb ask
    "4489c2"  # mov edx, r8d
    "ebd8"  # jmp pair
    # last:
    "4189d3"  # mov r11d, edx
    "41c1eb05"  # shr r11d, 5
    "478b9c9a00200000"  # mov r11d, [r10+r11*4+0x2000]
    "410fa3d3"  # bt r11d, edx
    "7226"  # jb ask
    "84d2"  # test dl, dl
    "7920"  # jns done
    "66837e0a03"  # cmp word [rsi+0xa], 3
    "7219"  # jb done
    "0fb650fe"  # movzx edx, byte [rax-2]
    "4189d3"  # mov r11d, edx
    "41c1eb05"  # shr r11d, 5
    "478b9c9a20200000"  # mov r11d, [r10+r11*4+0x2020]
    "410fa3d3"  # bt r11d, edx
    "7202"  # jb ask
    # done:
    "eb03"  # jmp more
    # ask:
    "ff6118"  # jmp [rcx+0x18]          ask(uc, current, previous, sieve)
    # more:
    "66837e0a02"  # cmp word [rsi+0xa], 2
    "7219"  # jb out
    "0fb650ff"  # movzx edx, byte [rax-1]
    "4189d3"  # mov r11d, edx
    "41c1eb05"  # shr r11d, 5
    "478b9c9a40200000"  # mov r11d, [r10+r11*4+0x2040]
    "410fa3d3"  # bt r11d, edx
    "72dd"  # jb ask
    # out:
    "c3"  # ret
)

# void interrupt(uc, number, Leading *leading)
#   rdi           esi     rdx
# At a breakpoint of `leads.LeadTable` the guest goes on where that says, with two registers saved
# if it wants that; others, and all other exceptions, are asked about, with the same arguments.
INTERRUPT: Final = bytes.fromhex(
    "3b32"  # cmp esi, [rdx]             the exception of a breakpoint?
    "7564"  # jne ask
    "488b4208"  # mov rax, [rdx+8]       where pc stands
    "4c8b00"  # mov r8, [rax]
    "49b9157c4a7fb979379e"  # movabs r9, MULTIPLIER
    "4d0fafc8"  # imul r9, r8
    "49c1e920"  # shr r9, 32
    "4c8b5a20"  # mov r11, [rdx+0x20]    entries
    # next:
    "4c234a28"  # and r9, [rdx+0x28]     mask
    "4c89c9"  # mov rcx, r9
    "48c1e105"  # shl rcx, 5
    "4d39040b"  # cmp [r11+rcx], r8
    "740c"  # je found
    "49833c0b00"  # cmp qword [r11+rcx], 0
    "742f"  # je ask
    "49ffc1"  # inc r9
    "ebe3"  # jmp next
    # found:
    "4d8b440b08"  # mov r8, [r11+rcx+8]
    "4c8900"  # mov [rax], r8            pc
    "4d8b440b10"  # mov r8, [r11+rcx+16]
    "488b4210"  # mov rax, [rdx+0x10]    where the clock's `expected` stands
    "4c8900"  # mov [rax], r8
    "4d8b440b18"  # mov r8, [r11+rcx+24]  where two registers are saved
    "4d85c0"  # test r8, r8
    "740b"  # je done
    "488b4230"  # mov rax, [rdx+0x30]    where they stand
    "0f1000"  # movups xmm0, [rax]
    "410f1100"  # movups [r8], xmm0
    # done:
    "c3"  # ret
    # ask:
    "ff6218"  # jmp [rdx+0x18]           ask(uc, number, leading)
)

ABORT_RECORD: Final = bytes.fromhex("1122334455667788")
"""Stands for the address of the record in ABORT and SIEVE, whose code is placed once a process."""

# void abort(void), as Unicorn calls it; the record is that of `unicorn_guard`.
# Inside uc_emu_start it stops the emulator and leaves its loop, elsewhere it is abort.
ABORT: Final = bytes.fromhex(
    "64488b042500000000"  # mov rax, fs:[0]     this thread
    "49b81122334455667788"  # movabs r8, record
    "493b00"  # cmp rax, [r8]
    "7519"  # jne real
    "4c89c3"  # mov rbx, r8
    "48ff4308"  # inc qword [rbx+8]
    "4883e4f0"  # and rsp, -16
    "488b7b18"  # mov rdi, [rbx+24]
    "ff5310"  # call [rbx+16]       uc_emu_stop(uc)
    "488b7b28"  # mov rdi, [rbx+40]
    "ff5320"  # call [rbx+32]       cpu_loop_exit(cpu), which does not return
    # real:
    "41ff6030"  # jmp [r8+48]
)

# int printf(const char *, ...) that prints nothing
SILENCE: Final = bytes.fromhex(
    "31c0"  # xor eax, eax
    "c3"  # ret
)

# int matches(cpu, addr, len) and void check(cpu, addr, len, attrs, flags, retaddr), as Unicorn
# calls its watchpoints' functions: when a page comes into the TLB, and at each access to one for
# which the first has answered; the record is that of `unicorn_sieve`. An access to watched bytes
# stops the emulator and leaves its loop in front of the instruction. A length that is none is that
# of an access within a page that is not aligned: Unicorn asks again, for more than the access.
SIEVE: Final = bytes.fromhex(
    # matches:
    "49ba1122334455667788"  # movabs r10,record
    "31c0"  # xor eax,eax
    "493b3a"  # cmp rdi,[r10]
    "7528"  # jne 0x39
    "488d1416"  # lea rdx,[rsi+rdx*1]
    "4d8b4230"  # mov r8,[r10+0x30]
    "4d8b4a38"  # mov r9,[r10+0x38]
    "e882000000"  # call find
    "7603"  # jbe 0x27
    "83c801"  # or eax,0x1
    "4d8b4220"  # mov r8,[r10+0x20]
    "4d8b4a28"  # mov r9,[r10+0x28]
    "e870000000"  # call find
    "7603"  # jbe 0x39
    "83c802"  # or eax,0x2
    "c3"  # ret
    # check:
    "49ba1122334455667788"  # movabs r10,record
    "493b3a"  # cmp rdi,[r10]
    "75f0"  # jne 0x39
    "4881fa00100000"  # cmp rdx,0x1000
    "77e7"  # ja 0x39
    "4589c3"  # mov r11d,r8d
    "4151"  # push r9
    "488d1416"  # lea rdx,[rsi+rdx*1]
    "41f7c002000000"  # test r8d,0x2
    "4d8b4230"  # mov r8,[r10+0x30]
    "4d8b4a38"  # mov r9,[r10+0x38]
    "7408"  # je 0x74
    "4d8b4220"  # mov r8,[r10+0x20]
    "4d8b4a28"  # mov r9,[r10+0x28]
    "57"  # push rdi
    "e82a000000"  # call find
    "5f"  # pop rdi
    "4159"  # pop r9
    "76ba"  # jbe 0x39
    "49897240"  # mov [r10+0x40],rsi
    "4d895a48"  # mov [r10+0x48],r11
    "4c89d3"  # mov rbx,r10
    "4989fc"  # mov r12,rdi
    "4d89cd"  # mov r13,r9
    "4883e4f0"  # and rsp,0xfffffffffffffff0
    "488b7b08"  # mov rdi,[rbx+0x8]
    "ff5310"  # call [rbx+0x10]
    "4c89e7"  # mov rdi,r12
    "4c89ee"  # mov rsi,r13
    "ff5318"  # call [rbx+0x18]
    # find:
    "31c9"  # xor ecx,ecx
    "4c39c9"  # cmp rcx,r9
    "731f"  # jae 0xca
    "4a8d3c09"  # lea rdi,[rcx+r9*1]
    "48d1ef"  # shr rdi,1
    "57"  # push rdi
    "48c1e704"  # shl rdi,0x4
    "493b743808"  # cmp rsi,[r8+rdi*1+0x8]
    "5f"  # pop rdi
    "7206"  # jb 0xc5
    "488d4f01"  # lea rcx,[rdi+0x1]
    "ebe1"  # jmp 0xa6
    "4989f9"  # mov r9,rdi
    "ebdc"  # jmp 0xa6
    "48c1e104"  # shl rcx,0x4
    "493b1408"  # cmp rdx,[r8+rcx*1]
    "c3"  # ret
)
SIEVE_CHECK: Final = 0x3A
"""Offset of check in it."""

# int lends(void): 1 if the processor has AVX2, FMA, F16C, BMI1, BMI2, AES and PCLMULQDQ, and the
# system keeps its registers.
LENDS: Final = bytes.fromhex(
    "53"  # push rbx
    "b801000000"  # mov eax, 1
    "31c9"  # xor ecx, ecx
    "0fa2"  # cpuid
    "81e10210003a"  # and ecx, 0x3a001002
    "81f90210003a"  # cmp ecx, 0x3a001002
    "752b"  # jne no
    "31c9"  # xor ecx, ecx
    "0f01d0"  # xgetbv
    "83e006"  # and eax, 6
    "83f806"  # cmp eax, 6
    "751e"  # jne no
    "b807000000"  # mov eax, 7
    "31c9"  # xor ecx, ecx
    "0fa2"  # cpuid
    "81e328010000"  # and ebx, 0x128
    "81fb28010000"  # cmp ebx, 0x128
    "7507"  # jne no
    "b801000000"  # mov eax, 1
    "5b"  # pop rbx
    "c3"  # ret
    # no:
    "31c0"  # xor eax, eax
    "5b"  # pop rbx
    "c3"  # ret
)

# void tell(env, leaf, subleaf, *eax, *ebx, *ecx, *edx): CPUID of the model alone, without movbe,
# BMI1 and lzcnt; the address of Unicorn's own function stands behind it.
TELL: Final = bytes.fromhex(
    "53"  # push rbx
    "4154"  # push r12
    "4155"  # push r13
    "89f3"  # mov ebx, esi
    "4d89c4"  # mov r12, r8
    "4d89cd"  # mov r13, r9
    "488b442420"  # mov rax, [rsp+0x20]
    "4883ec08"  # sub rsp, 8
    "50"  # push rax
    "ff152e000000"  # call [behind]
    "4883c410"  # add rsp, 16
    "83fb01"  # cmp ebx, 1
    "7508"  # jne structured
    "41816500ffffbfff"  # and dword [r13], ~(1 << 22)
    # structured:
    "83fb07"  # cmp ebx, 7
    "7505"  # jne extended
    "41832424f7"  # and dword [r12], ~(1 << 3)
    # extended:
    "81fb01000080"  # cmp ebx, 0x80000001
    "7505"  # jne done
    "41836500df"  # and dword [r13], ~(1 << 5)
    # done:
    "415d"  # pop r13
    "415c"  # pop r12
    "5b"  # pop rbx
    "c3"  # ret
)
