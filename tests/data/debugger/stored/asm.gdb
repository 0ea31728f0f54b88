b shop::Cart::total
run
disas main
up
x/3i $pc
x/2i main
info symbol main
p main
p $pc
disas /s shop::area
disas shop::Item::price
disas /m shop::Item::label
disas $pc,+16
disas main,+6
info line
frame function main
info frame
p twice
