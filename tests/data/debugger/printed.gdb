break 10
run
p s
p -pretty -- s
set print pretty on
p s
p &s
p *&s
p s.in
p m
info locals
set print pretty off
set print array on
p s.n
p s.in
p m
p s
set print pretty on
p s
p m
set print pretty off
set print array off
set print array-indexes on
p m
p zero
p s.in
p s.name
p s
set print array-indexes off
set print elements 5
p five
p exact
p nul
p zero
p m
p s.n
p s.name
p s.t
p s
x/s five
set print elements 4
p five
p m
p s
set print elements 0
show print elements
p s
set print elements unlimited
set print elements -1
set print elements foo
set print elements
set print elements 200
set print repeats 3
p zero
p s
p m
set print repeats 10
set print address off
p s
p &s
p five
p s.fn
p s.pi
p twice
p main
bt
info locals
x/s five
x/2x five
set print address on
set print symbol off
p s.fn
p s.pi
p s
p five
p &glob
set print symbol on
p &glob
p s.pi
set print union off
p s
p s.u
set print union on
set print null-stop on
p nul
p s.name
set print null-stop off
p nul
set print max-depth 1
p s
p s.in
set print max-depth 0
p s
p s.in
set print max-depth 20
set print pretty foo
set print nosuch on
set print pretty
p s.in[0]
set print pretty 0
p s.in[0]
show print pretty
p -elements 3 -- s.t
p -nosuch -- s
p -r -- 5
p -5
p -glob
p -glob -- 3
set listsize 3
list 5
list
list -
list twice
list 3,
list ,8
list 2,4
show listsize
set listsize 0
set listsize unlimited
list 1
set listsize -1
set listsize 10
set width 80
show width
set height 0
show height
set pagination off
show pagination
with listsize 3 -- list 5
with print elements 3 -- p s.t
show print elements
output s.in
print -array-indexes on -- m
print -repeats 2 -- zero
call s.in[0]
p -pretty -- /x s.in
display/x s.in
display -pretty
set var s.in[0].a = 9
p s.in
