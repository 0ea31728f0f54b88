"""System calls in the words of strace: arguments, structures, results and signals as text.

Tables say what there is: `calls.txt` has the arguments of each call, `names.txt` the names of
flags and values, `structs.txt` the structures, `ioctls.txt` the requests of ioctl, `netlink.txt`
and `attributes.txt` the messages of rtnetlink, `bpf.txt` what each command of bpf takes.
`kinds.py` lists the functions that show an argument of each kind; `decoder.py` puts them
together. All read the guest's memory through `call.py`, which bounds what a guest can make them
read. The texts are those of strace 6.1 as Debian 12 has it.
"""
