>>> p truck
{<fleet::Vehicle> = {_vptr.Vehicle = ADDRESS <vtable for fleet::Truck+16>, next = ADDRESS, name_ = ADDRESS "truck", id_ = 17}, <fleet::Loaded> = {_vptr.Loaded = ADDRESS <vtable for fleet::Truck+64>, load = 5}, axles = 3, engine = {fuel = fleet::Fuel::diesel, cylinders = 8, tilt = -2, turbo = true, flags = (fleet::dirty | fleet::late), {torque = 300, ratio = 4.20389539e-43}, gears = {a = 1, b = 2}, static last = ADDRESS, static limit = 12, part = {number = 41, bolt = {kind = 109 'm', width = 8}}}}
>>> p bike
{<fleet::Vehicle> = {_vptr.Vehicle = ADDRESS <vtable for fleet::Bike+16>, next = ADDRESS, name_ = ADDRESS "bike", id_ = 2}, <No data fields>}
>>> p *vehicle
{_vptr.Vehicle = ADDRESS <vtable for fleet::Truck+16>, next = ADDRESS, name_ = ADDRESS "truck", id_ = 17}
>>> p vehicle
(fleet::Vehicle *) ADDRESS
>>> p vref
(fleet::Vehicle &) @ADDRESS: {_vptr.Vehicle = ADDRESS <vtable for fleet::Bike+16>, next = ADDRESS, name_ = ADDRESS "bike", id_ = 2}
>>> p *cv
{_vptr.Vehicle = ADDRESS <vtable for fleet::Truck+16>, next = ADDRESS, name_ = ADDRESS "truck", id_ = 17}
>>> p loaded
(fleet::Loaded *) ADDRESS
>>> p *loaded
{_vptr.Loaded = ADDRESS <vtable for fleet::Truck+64>, load = 5}
>>> p truck.engine
{fuel = fleet::Fuel::diesel, cylinders = 8, tilt = -2, turbo = true, flags = (fleet::dirty | fleet::late), {torque = 300, ratio = 4.20389539e-43}, gears = {a = 1, b = 2}, static last = ADDRESS, static limit = 12, part = {number = 41, bolt = {kind = 109 'm', width = 8}}}
>>> p truck.load
5
>>> p truck.name_
ADDRESS "truck"
>>> p truck.id_
17
>>> p truck.name()
ADDRESS "truck"
>>> p truck.wheels()
6
>>> p vehicle->wheels()
6
>>> p other->wheels()
2
>>> p truck.cost(1)
6
>>> p truck.cost(1.5)
6
>>> p truck.cost("x")
120
>>> p truck.cost(bike)
19
>>> p truck.cost(1, 2)
8
>>> p truck.cost(1, 2, 3)
Cannot resolve method fleet::Truck::cost to any overloaded instance
>>> p truck.cost()
Too few arguments in function call.
>>> p truck.cost(truck)
34
>>> p truck.cost
cannot resolve overloaded method `cost': no arguments supplied
>>> p &truck.cost
cannot resolve overloaded method `cost': no arguments supplied
>>> p *&truck.axles
3
>>> p truck.self()
(const fleet::Truck &) @ADDRESS: {<fleet::Vehicle> = {_vptr.Vehicle = ADDRESS <vtable for fleet::Truck+16>, next = ADDRESS, name_ = ADDRESS "truck", id_ = 17}, <fleet::Loaded> = {_vptr.Loaded = ADDRESS <vtable for fleet::Truck+64>, load = 5}, axles = 3, engine = {fuel = fleet::Fuel::diesel, cylinders = 8, tilt = -2, turbo = true, flags = (fleet::dirty | fleet::late), {torque = 300, ratio = 4.20389539e-43}, gears = {a = 1, b = 2}, static last = ADDRESS, static limit = 12, part = {number = 41, bolt = {kind = 109 'm', width = 8}}}}
>>> p vehicle->self()
(const fleet::Vehicle &) @ADDRESS: {_vptr.Vehicle = ADDRESS <vtable for fleet::Truck+16>, next = ADDRESS, name_ = ADDRESS "truck", id_ = 17}
>>> p truck.self().axles
3
>>> p joined
{<fleet::Left> = {<fleet::Base> = {common = 1, same = 10, static shared = 77}, _vptr.Left = ADDRESS <vtable for fleet::Joined+24>, left = 2, same = 20}, <fleet::Right> = {_vptr.Right = ADDRESS <VTT for fleet::Joined>, right = 3}, own = 4}
>>> p joined.common
1
>>> p joined.Base::same
10
>>> p joined.Left::same
20
>>> p left->common
1
>>> p *left
{<fleet::Base> = {common = 1, same = 10, static shared = 77}, _vptr.Left = ADDRESS <vtable for fleet::Joined+24>, left = 2, same = 20}
>>> p *vbase
{common = 1, same = 10, static shared = 77}
>>> p right
(fleet::Right &) @ADDRESS: {<fleet::Base> = {common = 1, same = 10, static shared = 77}, _vptr.Right = ADDRESS <VTT for fleet::Joined>, right = 3}
>>> p joined.total()
10
>>> p Base::shared
77
>>> p joined.shared
77
>>> p left->shared
77
>>> p amb
{<fleet::One> = {n = 1, only1 = 5}, <fleet::Two> = {n = 2, only2 = 6}, mine = 3}
>>> p amb.n
Request for member 'n' is ambiguous in type 'fleet::Ambiguous'. Candidates are:
  'int fleet::One::n' (fleet::Ambiguous -> fleet::One)
  'int fleet::Two::n' (fleet::Ambiguous -> fleet::Two)
>>> p amb.One::n
1
>>> p amb.Two::n
2
>>> p amb.only2
6
>>> p amb.mine
3
>>> p hidden
{h = 7}
>>> p fleet::secret
99
>>> p hidden.get()
7
>>> p hide(1)
100
>>> p fleet::hide(1)
100
>>> p versioned
{version = 2}
>>> p fleet::v2::release
22
>>> p n1
{next = ADDRESS, value = 1}
>>> p *n1.next
{next = ADDRESS, value = 2}
>>> p n1.next->value
2
>>> p fd::level
3
>>> p fleet::deep::deeper::level
3
>>> p deep::deeper::level
3
>>> p fleet::deep::deeper::twice<int>(2)
4
>>> p engine
{fuel = fleet::Fuel::diesel, cylinders = 6, tilt = -2, turbo = true, flags = (fleet::dirty | fleet::late), {torque = 300, ratio = 4.20389539e-43}, gears = {a = 1, b = 2}, static last = ADDRESS, static limit = 12, part = {number = 41, bolt = {kind = 109 'm', width = 8}}}
>>> p engine.fuel
fleet::Fuel::diesel
>>> p engine.cylinders
6
>>> p engine.tilt
-2
>>> p engine.turbo
true
>>> p engine.flags
(fleet::dirty | fleet::late)
>>> p engine.torque
300
>>> p engine.ratio
4.20389539e-43
>>> p engine.gears
{a = 1, b = 2}
>>> p engine.gears.a
1
>>> p engine.part
{number = 41, bolt = {kind = 109 'm', width = 8}}
>>> p engine.part.bolt.kind
109 'm'
>>> p &engine.gears
(struct {...} *) ADDRESS
>>> p sizeof(engine.tilt)
4
>>> p engine.last
(fleet::Engine *) ADDRESS
>>> p *engine.last
{fuel = fleet::Fuel::diesel, cylinders = 8, tilt = -2, turbo = true, flags = (fleet::dirty | fleet::late), {torque = 300, ratio = 4.20389539e-43}, gears = {a = 1, b = 2}, static last = ADDRESS, static limit = 12, part = {number = 41, bolt = {kind = 109 'm', width = 8}}}
>>> p Engine::last
(fleet::Engine *) ADDRESS
>>> p fleet::Engine::last->cylinders
8
>>> p Engine::limit
12
>>> p Engine::scale
There is no field named scale
>>> p engine.scale
There is no member or method named scale.
>>> p engine.size()
6
>>> p bolt
{kind = 109 'm', width = 8}
>>> p fuel
fleet::Fuel::electric
>>> p fuel + 1
8
>>> p (int)fuel
7
>>> p fleet::Fuel::diesel
fleet::Fuel::diesel
>>> p Fuel::diesel
fleet::Fuel::diesel
>>> p fuel == fleet::Fuel::electric
true
>>> p fuel == 7
true
>>> p wild
9
>>> p flags
(fleet::dirty | fleet::late)
>>> p odd
(unknown: ADDRESS)
>>> p none
fleet::clean
>>> p flags | 2
7
>>> p (fleet::Flags)3
(fleet::dirty | fleet::broken)
>>> p (fleet::Flags)8
(unknown: ADDRESS)
>>> p (fleet::Fuel)3
fleet::Fuel::diesel
>>> p dirty
fleet::dirty
>>> p fleet::dirty
fleet::dirty
>>> p dirty | late
5
>>> p sg
fleet::minus
>>> p (int)sg
-1
>>> p fleet::minus
fleet::minus
>>> p/d sg
-1
>>> p/x flags
ADDRESS
>>> p/d flags
5
>>> p/c fuel
7 '\a'
>>> p/x engine
{fuel = ADDRESS, cylinders = ADDRESS, tilt = ADDRESS, turbo = ADDRESS, flags = ADDRESS, {torque = ADDRESS, ratio = ADDRESS}, gears = {a = ADDRESS, b = ADDRESS}, static last = ADDRESS, static limit = ADDRESS, part = {number = ADDRESS, bolt = {kind = ADDRESS, width = ADDRESS}}}
>>> p/t engine.cylinders
110
>>> p grid
{cells = {{-1, 0, 0}, {0, 0, 5}, {0, 0, 0}}, rebound = {u = 114 'r'}}
>>> p grid.cells[1][2]
5
>>> p grid.cells[1]
{0, 0, 5}
>>> p *grid.cells
{-1, 0, 0}
>>> p **grid.cells
-1
>>> p grid.sum()
4
>>> p grid.side
There is no member or method named side.
>>> p Grid<int, 3>::side
There is no field named side
>>> p dgrid
{cells = {{0, 0}, {0, 0}}, rebound = {u = 114 'r'}}
>>> p bgrid
{only = true}
>>> p reb
{u = 1.5}
>>> p tank
{litres = 40}
>>> p tank.fuel
There is no member named fuel.
>>> p tagged
{t = 116}
>>> p pack.count
There is no member or method named count.
>>> p derived
{<Crtp<Derived>> = {plain = 3}, k = 9}
>>> p derived.call()
12
>>> p derived.plain
3
>>> p pointed
{x = 1}
>>> p pointed.value()
4
>>> p price
{cents = 1255}
>>> p price + tax
{cents = 10755}
>>> p price - tax
{cents = -8245}
>>> p price * 2
{cents = 2510}
>>> p price < tax
true
>>> p price == tax
false
>>> p price >= tax
false
>>> p price > tax
No symbol "operator>" in current context.
>>> p price["c"]
1255
>>> p price[1]
1256
>>> p price % 7
2
>>> p ~price
{cents = -1255}
>>> p price << 5
(Money &) @ADDRESS: {cents = 1260}
>>> p (price, 3)
3
>>> p price.cents / 100
12
>>> p Money()
Attempt to use a type name as an expression
>>> p p
{x = 3, y = -4}
>>> p p.x * p.y
-12
>>> p p == q
false
>>> p p < q
Cannot resolve function operator< to any overloaded instance
>>> p &p
(Pt *) ADDRESS
>>> p *&p
{x = 3, y = -4}
>>> p &p.y
(int *) ADDRESS
>>> p (long)&p.y - (long)&p
4
>>> p word
{u = 1069547520, f = 1.5, b = "\000\000\300?", half = {lo = 0, hi = 16320}}
>>> p word.b
"\000\000\300?"
>>> p word.half
{lo = 0, hi = 16320}
>>> p word.half.hi
16320
>>> p/x word
{u = ADDRESS, f = ADDRESS, b = {ADDRESS, ADDRESS, ADDRESS, ADDRESS}, half = {lo = ADDRESS, hi = ADDRESS}}
>>> p/c word.b
{0 '\000', 0 '\000', 192 '\300', 63 '?'}
>>> p empty
{<No data fields>}
>>> p packed
{c = 122 'z', e = {<No data fields>}, i = 8}
>>> p flex
{n = 3, tail = "abc"}
>>> p flex.tail
"abc"
>>> p rec
{self = ADDRESS, depth = 1, ref = @ADDRESS}
>>> p rec.self->depth
1
>>> p rec.ref.depth
1
>>> p rec.ref
(Recursive &) @ADDRESS: {self = ADDRESS, depth = 1, ref = @ADDRESS}
>>> p *rec.self
{self = ADDRESS, depth = 1, ref = @ADDRESS}
>>> p/d arr
{1, 2, 3, 4, 5}
>>> p/c arr
{1 '\001', 2 '\002', 3 '\003', 4 '\004', 5 '\005'}
>>> p/t arr
{1, 10, 11, 100, 101}
>>> output arr
{1, 2, 3, 4, 5}
>>> p -arr
Argument to negate operation not a number.
>>> whatis arr + 1
type = int *
>>> p arr ? 2 : 3
2
>>> p m
{{1, 2, 3}, {4, 5, 6}}
>>> p/d m
{{1, 2, 3}, {4, 5, 6}}
>>> p/o m
{{01, 02, 03}, {04, 05, 06}}
>>> p/a m
{{ADDRESS, ADDRESS, ADDRESS}, {ADDRESS, ADDRESS, ADDRESS}}
>>> p sizeof(m)
24
>>> p &m
(int (*)[2][3]) ADDRESS
>>> p !m
false
>>> p m + 1
(int (*)[3]) ADDRESS
>>> p m == 0
false
>>> whatis m + 1
type = int (*)[3]
>>> p m[1]
{4, 5, 6}
>>> p m && 1
true
>>> p ~m
Argument to complement operation not an integer, boolean.
>>> p aref
(int (&)[5]) @ADDRESS: {1, 2, 3, 4, 5}
>>> p/c aref
(int (&)[5]) @ADDRESS: {1 '\001', 2 '\002', 3 '\003', 4 '\004', 5 '\005'}
>>> p/s aref
(int (&)[5]) @ADDRESS: {1, 2, 3, 4, 5}
>>> p/t aref
(int (&)[5]) @ADDRESS: {1, 10, 11, 100, 101}
>>> p/u aref
(int (&)[5]) @ADDRESS: {1, 2, 3, 4, 5}
>>> p sizeof(aref)
20
>>> output aref
(int (&)[5]) @ADDRESS: {1, 2, 3, 4, 5}
>>> p !aref
false
>>> p aref == 0
false
>>> p/d *parr
{1, 2, 3, 4, 5}
>>> p/t *parr
{1, 10, 11, 100, 101}
>>> p/o *parr
{01, 02, 03, 04, 05}
>>> p/u *parr
{1, 2, 3, 4, 5}
>>> p/a *parr
{ADDRESS, ADDRESS, ADDRESS, ADDRESS, ADDRESS}
>>> p/z *parr
{ADDRESS, ADDRESS, ADDRESS, ADDRESS, ADDRESS}
>>> p/f *parr
{1.40129846e-45, 2.80259693e-45, 4.20389539e-45, 5.60519386e-45, 7.00649232e-45}
>>> whatis *parr
type = int [5]
>>> p &*parr
(int (*)[5]) ADDRESS
>>> p *parr + 1
(int *) ADDRESS
>>> p *parr[1]
0
>>> p/x parr
ADDRESS
>>> whatis parr
type = int (*)[5]
>>> p &parr
(int (**)[5]) ADDRESS
>>> p -parr
Argument to negate operation not a number.
>>> p parr + 1
(int (*)[5]) ADDRESS
>>> p/z ip
ADDRESS
>>> whatis ip
type = int *
>>> p sizeof(ip)
8
>>> p ip + 1
(int *) ADDRESS
>>> p *ip
2
>>> whatis &ip
type = int **
>>> p ip ? 2 : 3
2
>>> p ~ip
Argument to complement operation not an integer, boolean.
>>> p/o *ip
02
>>> p/u *ip
2
>>> p/a *ip
ADDRESS
>>> p &*ip
(int *) ADDRESS
>>> output *ip
2
>>> p !*ip
false
>>> p -*ip
-2
>>> p ipp
(int **) ADDRESS
>>> p/s ipp
(int **) ADDRESS
>>> p/a ipp
ADDRESS
>>> p/z ipp
ADDRESS
>>> p ipp == 0
false
>>> p ipp && 1
true
>>> p/x **ipp
ADDRESS
>>> p/c **ipp
2 '\002'
>>> p/t **ipp
10
>>> p/o **ipp
02
>>> p &**ipp
(int *) ADDRESS
>>> p -**ipp
-2
>>> p **ipp == 0
false
>>> p ***ipp
Cannot access memory at address ADDRESS
>>> p (char)**ipp
2 '\002'
>>> p **ipp[1]
Cannot access memory at address ADDRESS
>>> p/x buf
{ADDRESS, ADDRESS, ADDRESS, ADDRESS, ADDRESS, ADDRESS, ADDRESS, ADDRESS, ADDRESS, ADDRESS, ADDRESS, ADDRESS, ADDRESS, ADDRESS, ADDRESS, ADDRESS}
>>> p/c buf
{104 'h', 101 'e', 108 'l', 108 'l', 111 'o', 9 '\t', 119 'w', 1 '\001', 0 '\000', 0 '\000', 0 '\000', 0 '\000', 0 '\000', 0 '\000', 0 '\000', 0 '\000'}
>>> p/s buf
"hello\tw\001\000\000\000\000\000\000\000"
>>> whatis buf
type = char [16]
>>> p -buf
Argument to negate operation not a number.
>>> whatis buf + 1
type = char *
>>> p buf[1]
101 'e'
>>> whatis &buf
type = char (*)[16]
>>> p ~buf
Argument to complement operation not an integer, boolean.
>>> p/d cs
4407413
>>> p/o cs
020640165
>>> p/u cs
4407413
>>> p/f cs
2.177551350334106e-317
>>> p *cs
99 'c'
>>> p cs ? 2 : 3
2
>>> p ~cs
Argument to complement operation not an integer, boolean.
>>> p/c ws
124 '|'
>>> p/s ws
ADDRESS L"wide"
>>> p/o ws
020640174
>>> p/u ws
4407420
>>> whatis ws
type = const wchar_t *
>>> p &ws
(const wchar_t **) ADDRESS
>>> output ws
ADDRESS L"wide"
>>> p ws + 1
ADDRESS L"ide"
>>> p ws && 1
true
>>> p us
ADDRESS u"u16"
>>> p/d us
4407440
>>> p/s us
ADDRESS u"u16"
>>> p/t us
10000110100000010010000
>>> p/o us
020640220
>>> whatis us
type = const char16_t *
>>> output us
ADDRESS u"u16"
>>> p -us
Argument to negate operation not a number.
>>> whatis us + 1
type = const char16_t *
>>> p us[1]
49 u'1'
>>> whatis &us
type = const char16_t **
>>> p/x c32
ADDRESS
>>> p/z c32
ADDRESS
>>> p sizeof(c32)
4
>>> p !c32
false
>>> p c32 + 1
9732
>>> whatis c32 + 1
type = unsigned int
>>> p c8
97 'a'
>>> p/x c8
ADDRESS
>>> p/a c8
ADDRESS
>>> p &c8
(char8_t *) ADDRESS "a\003&"
>>> p c8 + 1
98
>>> p *c8
Cannot access memory at address ADDRESS
>>> p c8[1]
cannot subscript something of type `char8_t'
>>> whatis &c8
type = char8_t *
>>> p c8 ? 2 : 3
2
>>> p/s wc
119 L'w'
>>> p/o wc
0167
>>> whatis wc
type = wchar_t
>>> output wc
119 L'w'
>>> p -wc
-119 L'\xffffff89'
>>> p wc[1]
cannot subscript something of type `wchar_t'
>>> p wc && 1
true
>>> p/x bytes
{ADDRESS, ADDRESS, ADDRESS, ADDRESS}
>>> p/d bytes
{0, 127, -128, -1}
>>> p/s bytes
"\000\177\200\377"
>>> p/o bytes
{0, 0177, 0200, 0377}
>>> p/z bytes
{ADDRESS, ADDRESS, ADDRESS, ADDRESS}
>>> p/f bytes
{0, 127, 128, 255}
>>> whatis bytes
type = unsigned char [4]
>>> p bytes == 0
false
>>> p *bytes
0 '\000'
>>> whatis bytes + 1
type = unsigned char *
>>> p bytes && 1
true
>>> p bytes ? 2 : 3
2
>>> p/x sc
ADDRESS
>>> p/c sc
-5 '\373'
>>> p/s sc
-5 '\373'
>>> p/u sc
251
>>> p/z sc
ADDRESS
>>> p *sc
Cannot access memory at address ADDRESS
>>> p sc ? 2 : 3
2
>>> p ~sc
4
>>> p nul
0 '\000'
>>> p/t nul
0
>>> p/o nul
0
>>> p/a nul
ADDRESS
>>> p !nul
true
>>> p -nul
0
>>> p nul == 0
true
>>> whatis nul + 1
type = int
>>> p (char)nul
0 '\000'
>>> p nul[1]
cannot subscript something of type `char'
>>> p ~nul
-1
>>> p/d ctl
10
>>> p/c ctl
10 '\n'
>>> p/s ctl
10 '\n'
>>> p/f ctl
10
>>> whatis ctl
type = char
>>> p sizeof(ctl)
1
>>> output ctl
10 '\n'
>>> p ctl + 1
11
>>> p ctl[1]
cannot subscript something of type `char'
>>> p/d hi
-1
>>> p/t hi
11111111
>>> p/z hi
ADDRESS
>>> whatis hi
type = char
>>> p sizeof(hi)
1
>>> p hi == 0
false
>>> p *hi
Cannot access memory at address ADDRESS
>>> whatis hi + 1
type = int
>>> p (long)hi
-1
>>> whatis &hi
type = char *
>>> p ~hi
0
>>> p sh
-300
>>> p/x sh
ADDRESS
>>> p/t sh
1111111011010100
>>> whatis sh
type = short
>>> p !sh
false
>>> p sh + 1
-299
>>> p *sh
Cannot access memory at address ADDRESS
>>> p (long)sh
-300
>>> p sh[1]
cannot subscript something of type `short'
>>> p sh ? 2 : 3
2
>>> p/d us16
-1
>>> p/z us16
ADDRESS
>>> p sizeof(us16)
2
>>> p &us16
(unsigned short *) ADDRESS
>>> p -us16
-65535
>>> p us16 == 0
false
>>> whatis us16 + 1
type = int
>>> p (long)us16
65535
>>> p us16[1]
cannot subscript something of type `unsigned short'
>>> whatis &us16
type = unsigned short *
>>> p/t lg
1111111111111111111111111111111111111111111111111111111111111111
>>> p/u lg
18446744073709551615
>>> p/a lg
ADDRESS
>>> whatis lg
type = long
>>> output lg
-1
>>> p !lg
false
>>> p lg == 0
false
>>> whatis lg + 1
type = long
>>> p (long)lg
-1
>>> p (char)lg
-1 '\377'
>>> p ~lg
0
>>> p/s ul
9223372036854775808
>>> p/o ul
01000000000000000000000
>>> p/u ul
9223372036854775808
>>> p/a ul
ADDRESS
>>> p/f ul
-0
>>> p &ul
(unsigned long *) ADDRESS
>>> p !ul
false
>>> whatis ul + 1
type = unsigned long
>>> p (long)ul
-9223372036854775808
>>> p ~ul
9223372036854775807
>>> p/c ll
0 '\000'
>>> p/s ll
1099511627776
>>> p/o ll
020000000000000
>>> p/u ll
1099511627776
>>> p/z ll
ADDRESS
>>> p sizeof(ll)
8
>>> p &ll
(long long *) ADDRESS
>>> p *ll
Cannot access memory at address ADDRESS
>>> p ll && 1
true
>>> p ~ll
-1099511627777
>>> p/d big
1267650600228229401496703205376
>>> p/t big
10000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000
>>> output big
1267650600228229401496703205376
>>> p !big
false
>>> p big[1]
cannot subscript something of type `__int128'
>>> p big && 1
true
>>> p/c fl
0 '\000'
>>> p/o fl
07563146315
>>> output fl
0.100000001
>>> p fl + 1
1.10000002
>>> p (long)fl
0
>>> p (char)fl
0 '\000'
>>> p fl[1]
cannot subscript something of type `float'
>>> whatis &fl
type = float *
>>> p ~fl
Argument to complement operation not an integer, boolean.
>>> p/d dbl
6103021453049119613
>>> p/o dbl
0522622232644545141575
>>> p/a dbl
ADDRESS
>>> p/z dbl
ADDRESS
>>> p/f dbl
1e+100
>>> whatis dbl
type = double
>>> p !dbl
false
>>> p dbl + 1
1e+100
>>> p dbl == 0
false
>>> p *dbl
Attempt to take contents of a non-pointer value.
>>> p dbl[1]
cannot subscript something of type `double'
>>> p ~dbl
Argument to complement operation not an integer, boolean.
>>> p/c nan
-1 '\377'
>>> p/u nan
9221120237041090560
>>> p/a nan
ADDRESS
>>> p/z nan
ADDRESS
>>> whatis nan
type = double
>>> p sizeof(nan)
8
>>> p nan == 0
false
>>> p (long)nan
9223372036854775807
>>> p (char)nan
-1 '\377'
>>> p/o inf
01777600000000000000000
>>> p/u inf
18442240474082181120
>>> p/z inf
ADDRESS
>>> p &inf
(double *) ADDRESS
>>> p inf + 1
-inf
>>> whatis inf + 1
type = double
>>> p inf[1]
cannot subscript something of type `double'
>>> whatis &inf
type = double *
>>> p inf ? 2 : 3
2
>>> p/o tiny
01
>>> p/a tiny
ADDRESS
>>> p !tiny
false
>>> p -tiny
-4.9406564584124654e-324
>>> p *tiny
Attempt to take contents of a non-pointer value.
>>> p tiny[1]
cannot subscript something of type `double'
>>> p tiny && 1
true
>>> p/d whole
4636737291354636288
>>> p/u whole
4636737291354636288
>>> p/a whole
ADDRESS
>>> p sizeof(whole)
8
>>> p whole + 1
101
>>> p whole && 1
true
>>> p whole ? 2 : 3
2
>>> p ~whole
Argument to complement operation not an integer, boolean.
>>> output ld
1.25
>>> p ld + 1
2.25
>>> p (char)ld
1 '\001'
>>> p ld[1]
cannot subscript something of type `long double'
>>> whatis &ld
type = long double *
>>> p yes
true
>>> p/d yes
1
>>> p/c yes
1 '\001'
>>> p/o yes
01
>>> p sizeof(yes)
1
>>> p &yes
(bool *) ADDRESS
>>> p yes + 1
2
>>> p *yes
Attempt to take contents of a non-pointer value.
>>> whatis yes + 1
type = int
>>> p (long)yes
1
>>> p yes && 1
true
>>> p yes ? 2 : 3
2
>>> p ~yes
-2
>>> p/s no
false
>>> p/z no
ADDRESS
>>> p sizeof(no)
1
>>> p no + 1
1
>>> p (long)no
0
>>> p no ? 2 : 3
3
>>> p ~no
-1
>>> p/a vp
ADDRESS
>>> p/z vp
ADDRESS
>>> whatis vp
type = void *
>>> p !vp
false
>>> p *vp
Attempt to dereference a generic pointer.
>>> whatis vp + 1
type = void *
>>> p vp ? 2 : 3
2
>>> p ~vp
Argument to complement operation not an integer, boolean.
>>> p/x cvp
ADDRESS
>>> p/d cvp
4407413
>>> p/c cvp
117 'u'
>>> p/s cvp
(const void *) ADDRESS
>>> p/t cvp
10000110100000001110101
>>> p/o cvp
020640165
>>> p/u cvp
4407413
>>> p/a cvp
ADDRESS
>>> whatis cvp
type = const void *
>>> p sizeof(cvp)
8
>>> p &cvp
(const void **) ADDRESS
>>> p -cvp
Argument to negate operation not a number.
>>> whatis cvp + 1
type = const void *
>>> p cvp && 1
true
>>> p ~cvp
Argument to complement operation not an integer, boolean.
>>> p/x ci
ADDRESS
>>> p/d ci
7
>>> p sizeof(ci)
4
>>> p -ci
-7
>>> p ci ? 2 : 3
2
>>> p ~ci
-8
>>> p/u vi
8
>>> p/f vi
1.12103877e-44
>>> p &vi
(volatile int *) ADDRESS
>>> p !vi
false
>>> p -vi
-8
>>> p (long)vi
8
>>> p vi && 1
true
>>> p ~vi
-9
>>> p cip
(int * const) ADDRESS
>>> output cip
(int * const) ADDRESS
>>> p -cip
Argument to negate operation not a number.
>>> p cip + 1
(int * const) ADDRESS
>>> whatis cip + 1
type = int * const
>>> p cip[1]
4
>>> p/c *cip
3 '\003'
>>> p/s *cip
3
>>> p/t *cip
11
>>> p/a *cip
ADDRESS
>>> output *cip
3
>>> p -*cip
-3
>>> p *cip == 0
false
>>> p *cip && 1
true
>>> p/s pci
(const int *) ADDRESS
>>> p/z pci
ADDRESS
>>> output pci
(const int *) ADDRESS
>>> p -pci
Argument to negate operation not a number.
>>> p pci + 1
(const int *) ADDRESS
>>> p *pci
7
>>> whatis pci + 1
type = const int *
>>> p pci[1]
-8356096
>>> p/d iref
(int &) @ADDRESS: 4
>>> p/s iref
(int &) @ADDRESS: 4
>>> p/t iref
(int &) @ADDRESS: 100
>>> p/o iref
(int &) @ADDRESS: 04
>>> whatis iref
type = int &
>>> p &iref
(int *) ADDRESS
>>> output iref
(int &) @ADDRESS: 4
>>> p !iref
false
>>> p -iref
-4
>>> p iref == 0
false
>>> whatis iref + 1
type = int
>>> p iref[1]
cannot subscript something of type `int'
>>> whatis &iref
type = int *
>>> p iref && 1
true
>>> p iref ? 2 : 3
2
>>> p/s rref
(int &&) @ADDRESS: 9
>>> p sizeof(rref)
4
>>> p rref == 0
false
>>> p ~rref
-10
>>> whatis np
type = std::nullptr_t
>>> p *np
Attempt to dereference a generic pointer.
>>> p/t nullp
0
>>> p/f nullp
0
>>> p sizeof(nullp)
8
>>> p nullp == 0
true
>>> whatis nullp + 1
type = int *
>>> whatis &nullp
type = int **
>>> p nullp ? 2 : 3
3
>>> p/d fp
4204748
>>> p/o fp
020024314
>>> whatis fp
type = int (*)(int)
>>> p sizeof(fp)
8
>>> p &fp
(int (**)(int)) ADDRESS
>>> p !fp
false
>>> p fp == 0
false
>>> p (long)fp
4204748
>>> p fp[1]
{int (int)} ADDRESS <increment(int)+1>
>>> p fp && 1
true
>>> p fp ? 2 : 3
2
>>> p ~fp
Argument to complement operation not an integer, boolean.
>>> p fref
(int (&)(int)) @ADDRESS: {int (int)} ADDRESS <increment(int)>
>>> whatis fref
type = int (&)(int)
>>> p &fref
(int (*)(int)) ADDRESS <increment(int)>
>>> p !fref
false
>>> p *fref
{int (int)} ADDRESS <increment(int)>
>>> p (long)fref
4204748
>>> p fref && 1
true
>>> p ~fref
Argument to complement operation not an integer, boolean.
>>> p/o fn0
020024333
>>> p/f fn0
2.0774289472043773e-317
>>> p sizeof(fn0)
8
>>> p fn0 == 0
false
>>> p (long)fn0
4204763
>>> p (char)fn0
-37 '\333'
>>> whatis &fn0
type = void (**)(void)
>>> p fn0 && 1
true
>>> p/x table
{ADDRESS, ADDRESS}
>>> p !table
false
>>> p table == 0
false
>>> whatis &table
type = int (*(*)[2])(int)
>>> p table ? 2 : 3
2
>>> p ~table
Argument to complement operation not an integer, boolean.
>>> p/s pm
&fleet::Truck::axles
>>> p/t pm
101100
>>> p/o pm
054
>>> p/z pm
ADDRESS
>>> whatis pm
type = int fleet::Truck::*
>>> p sizeof(pm)
8
>>> p !pm
false
>>> p *pm
Attempt to dereference pointer to member without an object
>>> whatis pm + 1
Argument to arithmetic operation not a number or boolean.
>>> whatis &pm
type = int fleet::Truck::**
>>> p pm ? 2 : 3
2
>>> p/z py
ADDRESS
>>> whatis py
type = int Pt::*
>>> output py
&Pt::y
>>> p !py
false
>>> p (char)py
4 '\004'
>>> whatis &py
type = int Pt::**
>>> p py && 1
true
>>> p py ? 2 : 3
2
>>> p pmf
&virtual fleet::Vehicle::wheels() const
>>> p/z pmf
ADDRESS
>>> p &pmf
(int (fleet::Vehicle::**)(const fleet::Vehicle * const)) ADDRESS
>>> p -pmf
Argument to negate operation not a number.
>>> p pmf ? 2 : 3
2
>>> p ~pmf
Argument to complement operation not an integer, boolean.
>>> p/x pmi
ADDRESS
>>> p/s pmi
(int (fleet::Inspector::*)(fleet::Inspector * const, const fleet::Vehicle &, int)) ADDRESS <fleet::Inspector::inspect(fleet::Vehicle const&, int)>
>>> p/o pmi
020223610
>>> p/u pmi
4269960
>>> p/z pmi
ADDRESS
>>> whatis pmi
type = int (fleet::Inspector::*)(fleet::Inspector * const, const fleet::Vehicle &, int)
>>> p &pmi
(int (fleet::Inspector::**)(fleet::Inspector * const, const fleet::Vehicle &, int)) ADDRESS
>>> whatis pmi + 1
Argument to arithmetic operation not a number or boolean.
>>> p (long)pmi
4269960
>>> p pmi[1]
cannot subscript requested type
>>> p pmi && 1
true
>>> p/t npm
1111111111111111111111111111111111111111111111111111111111111111
>>> p/z npm
ADDRESS
>>> p sizeof(npm)
8
>>> output npm
NULL
>>> p npm == 0
Invalid type combination in equality test.
>>> whatis npm + 1
Argument to arithmetic operation not a number or boolean.
>>> p (long)npm
-1
>>> p ~npm
Argument to complement operation not an integer, boolean.
>>> p pr
{first = 1, second = {x = 2, y = 3}}
>>> p uit
{__i_ = {__node_ = ADDRESS}}
>>> p view
No symbol "view" in current context.
>>> p filtered
No symbol "filtered" in current context.
>>> p iota
No symbol "iota" in current context.
>>> p rw
{<std::__1::__weak_result_type<int>> = {<std::__1::__weak_result_type_imp<int, false>> = {<std::__1::__maybe_derive_from_unary_function<int, false>> = {<No data fields>}, <std::__1::__maybe_derive_from_binary_function<int, false>> = {<No data fields>}, <No data fields>}, <No data fields>}, __f_ = ADDRESS}
>>> p gen
{h = {__handle_ = ADDRESS}}
>>> p s.capacity()
Cannot evaluate function -- may be inlined
>>> p s.find("x")
Too few arguments in function call.
>>> p *v.begin()
Cannot evaluate function -- may be inlined
>>> p v.begin()
Cannot evaluate function -- may be inlined
>>> p *(v.begin() + 1)
Cannot evaluate function -- may be inlined
>>> p v.end() - v.begin()
Cannot evaluate function -- may be inlined
>>> p v.capacity()
Cannot evaluate function -- may be inlined
>>> p *v._M_impl._M_start@2
There is no member or method named _M_impl.
>>> p v._M_impl._M_finish - v._M_impl._M_start
There is no member or method named _M_impl.
>>> p mp.find("one")->second
Cannot evaluate function -- may be inlined
>>> p mp.begin()->first
Cannot evaluate function -- may be inlined
>>> p *st.begin()
Cannot evaluate function -- may be inlined
>>> p um.begin()->second
Cannot evaluate function -- may be inlined
>>> p *li.begin()
Cannot evaluate function -- may be inlined
>>> p pr.first
1
>>> p pr.second
{x = 2, y = 3}
>>> p pr.second.x
2
>>> p var.index()
Cannot evaluate function -- may be inlined
>>> p *wp.lock()
Cannot evaluate function -- may be inlined
>>> p path.string()
Cannot evaluate function -- may be inlined
>>> p path.c_str()
Cannot evaluate function -- may be inlined
>>> p path.filename()
Cannot evaluate function -- may be inlined
>>> p path / "x"
No symbol "operator/" in current context.
>>> p ms > ms
No symbol "operator>" in current context.
>>> p *rit
Could not find operator*.
>>> p vit - v.begin()
Cannot evaluate function -- may be inlined
>>> p *span.begin()
Cannot evaluate function -- may be inlined
>>> p view.size()
No symbol "view" in current context.
>>> p mm.begin()->second.begin()->second.x
Cannot evaluate function -- may be inlined
>>> p rw.get()
Cannot evaluate function -- may be inlined
>>> p gen.h
{__handle_ = ADDRESS}
>>> p gen.h.promise()
Cannot evaluate function -- may be inlined
>>> p gen.h.promise().value
Cannot evaluate function -- may be inlined
>>> p gen.h.done()
Cannot evaluate function -- may be inlined
>>> p gen.h.address()
Cannot evaluate function -- may be inlined
>>> p *inspector.log._M_impl._M_start
There is no member or method named _M_impl.
>>> p inspector.seen
0
>>> p inspector.made
15
>>> p fleet::Inspector::made
15
>>> p $
15
>>> p $$
15
>>> p $$2
15
>>> p $1
{<fleet::Vehicle> = {_vptr.Vehicle = ADDRESS <vtable for fleet::Truck+16>, next = ADDRESS, name_ = ADDRESS "truck", id_ = 17}, <fleet::Loaded> = {_vptr.Loaded = ADDRESS <vtable for fleet::Truck+64>, load = 5}, axles = 3, engine = {fuel = fleet::Fuel::diesel, cylinders = 8, tilt = -2, turbo = true, flags = (fleet::dirty | fleet::late), {torque = 300, ratio = 4.20389539e-43}, gears = {a = 1, b = 2}, static last = ADDRESS, static limit = 12, part = {number = 41, bolt = {kind = 109 'm', width = 8}}}}
>>> p $nosuch
void
>>> p &s
(std::__1::string *) ADDRESS
>>> p &v
(std::__1::vector<int, std::__1::allocator<int> > *) ADDRESS
>>> p sizeof(s)
24
>>> p sizeof(v)
24
>>> whatis v.begin()
Cannot evaluate function -- may be inlined
>>> whatis gen
type = Gen
>>> whatis add
type = struct {...}
>>> whatis adder
type = struct {...}
>>> whatis generic
type = struct {...}
>>> p add
{<No data fields>}
>>> p adder
{__cap = 6, __p = @ADDRESS}
>>> p generic
{<No data fields>}
>>> p adder.__cap
6
>>> p adder.__p.x
3
>>> p bx
3
>>> p by
-4
>>> p rx
3
>>> p ry
5
>>> p &rx
(int *) ADDRESS
>>> whatis bx
type = int
>>> whatis rx
type = int
>>> p rx = 9
9
>>> p q
{x = 9, y = 5}
>>> p/r s
{static __short_mask = 1, static __long_mask = 1, __r_ = {<std::__1::__compressed_pair_elem<std::__1::basic_string<char, std::__1::char_traits<char>, std::__1::allocator<char> >::__rep, 0, false>> = {__value_ = {{__l = {__cap_ = 500236121096, __size_ = 0, __data_ = ADDRESS}, __s = {{__size_ = 8 '\b', __lx = 8 '\b'}, __data_ = "text", '\000' <repeats 18 times>}, __r = {__words = {500236121096, 0, 0}}}}}, <std::__1::__compressed_pair_elem<std::__1::allocator<char>, 1, true>> = {<std::__1::allocator<char>> = {<std::__1::__non_trivial_if<true, std::__1::allocator<char> >> = {<No data fields>}, <No data fields>}, <No data fields>}, <No data fields>}, static npos = 18446744073709551615}
>>> p/x pr
{first = ADDRESS, second = {x = ADDRESS, y = ADDRESS}}
>>> p -array-indexes -- arr
{[0] = 1, [1] = 2, [2] = 3, [3] = 4, [4] = 5}
>>> p -object -- *vehicle
(fleet::Truck) {<fleet::Vehicle> = {_vptr.Vehicle = ADDRESS <vtable for fleet::Truck+16>, next = ADDRESS, name_ = ADDRESS "truck", id_ = 17}, <fleet::Loaded> = {_vptr.Loaded = ADDRESS <vtable for fleet::Truck+64>, load = 5}, axles = 3, engine = {fuel = fleet::Fuel::diesel, cylinders = 8, tilt = -2, turbo = true, flags = (fleet::dirty | fleet::late), {torque = 300, ratio = 4.20389539e-43}, gears = {a = 1, b = 2}, static last = ADDRESS, static limit = 12, part = {number = 41, bolt = {kind = 109 'm', width = 8}}}}
>>> p -object -- vehicle
(fleet::Truck *) ADDRESS
>>> p -vtbl -- truck
{<fleet::Vehicle> = {_vptr.Vehicle = ADDRESS <vtable for fleet::Truck+16>, next = ADDRESS, name_ = ADDRESS "truck", id_ = 17}, <fleet::Loaded> = {_vptr.Loaded = ADDRESS <vtable for fleet::Truck+64>, load = 5}, axles = 3, engine = {fuel = fleet::Fuel::diesel, cylinders = 8, tilt = -2, turbo = true, flags = (fleet::dirty | fleet::late), {torque = 300, ratio = 4.20389539e-43}, gears = {a = 1, b = 2}, static last = ADDRESS, static limit = 12, part = {number = 41, bolt = {kind = 109 'm', width = 8}}}}
>>> p -symbol off -- fp
(int (*)(int)) ADDRESS <increment(int)>
>>> p -address off -- fp
(int (*)(int)) <increment(int)>
>>> p -address off -- vehicle
(fleet::Vehicle *)
>>> p -address off -- cs
"caf\303\251"
>>> p -static-members off -- engine
{fuel = fleet::Fuel::diesel, cylinders = 6, tilt = -2, turbo = true, flags = (fleet::dirty | fleet::late), {torque = 300, ratio = 4.20389539e-43}, gears = {a = 1, b = 2}, part = {number = 41, bolt = {kind = 109 'm', width = 8}}}
>>> p -union off -- engine
{fuel = fleet::Fuel::diesel, cylinders = 6, tilt = -2, turbo = true, flags = (fleet::dirty | fleet::late), {...}, gears = {a = 1, b = 2}, static last = ADDRESS, static limit = 12, part = {number = 41, bolt = {kind = 109 'm', width = 8}}}
>>> p -null-stop -- buf
"hello\tw\001"
>>> p -raw-values -- v
{__begin_ = ADDRESS, __end_ = ADDRESS, __end_cap_ = {<std::__1::__compressed_pair_elem<int*, 0, false>> = {__value_ = ADDRESS}, <std::__1::__compressed_pair_elem<std::__1::allocator<int>, 1, true>> = {<std::__1::allocator<int>> = {<std::__1::__non_trivial_if<true, std::__1::allocator<int> >> = {<No data fields>}, <No data fields>}, <No data fields>}, <No data fields>}}
>>> p -max-depth 1 -- truck
{<fleet::Vehicle> = {...}, <fleet::Loaded> = {...}, axles = 3, engine = {...}}
>>> p -max-depth 0 -- truck
{...}
>>> ptype truck
type = struct fleet::Truck : public fleet::Vehicle, private fleet::Loaded {
    int axles;
    fleet::Engine engine;
  public:
    Truck(fleet::Id, int);
    virtual int wheels(void) const;
    virtual const fleet::Truck & self(void) const;
}
>>> whatis truck
type = fleet::Truck
>>> ptype/o truck
/* offset      |    size */  type = struct fleet::Truck : public fleet::Vehicle, private fleet::Loaded {
/*     44      |       4 */    int axles;
/*     48      |      28 */    struct fleet::Engine {
/*     48      |       1 */        fleet::Fuel fuel;
/*     49: 0   |       4 */        unsigned int cylinders : 4;
/*     49: 4   |       4 */        int tilt : 3;
/*     49: 7   |       1 */        bool turbo : 1;
/* XXX  2-byte hole      */
/*     52      |       4 */        fleet::Flags flags;
/*     56      |       4 */        union {
/*                     4 */            int torque;
/*                     4 */            float ratio;

                                       /* total size (bytes):    4 */
                                   };
/*     60      |       4 */        struct {
/*     60      |       2 */            short a;
/*     62      |       2 */            short b;

                                       /* total size (bytes):    4 */
                                   } gears;
                                   static fleet::Engine *last;
                                   static const int limit;
/*     64      |      12 */        class fleet::Engine::Part {
                                     public:
/*     64      |       4 */            int number;
/*     68      |       8 */            struct fleet::Engine::Part::Bolt {
/*     68      |       1 */                char kind;
/* XXX  3-byte hole      */
/*     72      |       4 */                int width;

                                           /* total size (bytes):    8 */
                                       } bolt;

                                       /* total size (bytes):   12 */
                                   } part;

                                   /* total size (bytes):   28 */
                               } engine;
/* XXX  4-byte padding   */

                               /* total size (bytes):   80 */
                             }
>>> ptype bike
type = struct fleet::Bike : public fleet::Vehicle {
  public:
    Bike(void);
    virtual int wheels(void) const;
}
>>> whatis bike
type = fleet::Bike
>>> ptype/o bike
/* offset      |    size */  type = struct fleet::Bike : public fleet::Vehicle {

                               /* total size (bytes):   32 */
                             }
>>> ptype vehicle
type = class fleet::Vehicle {
  public:
    fleet::Vehicle *next;
  protected:
    const char *name_;
  private:
    fleet::Id id_;

  public:
    Vehicle(const char *, fleet::Id);
    ~Vehicle(void);
    virtual int wheels(void) const;
    virtual const fleet::Vehicle & self(void) const;
    const char * name(void) const;
    fleet::Id id(void) const;
    int cost(int) const;
    int cost(double, int) const;
    int cost(const char *) const;
    int cost(const fleet::Vehicle &) const;
} *
>>> whatis vehicle
type = fleet::Vehicle *
>>> ptype/o vehicle
type = class fleet::Vehicle {
                             public:
/*      8      |       8 */    fleet::Vehicle *next;
                             protected:
/*     16      |       8 */    const char *name_;
                             private:
/*     24      |       2 */    fleet::Id id_;
/* XXX  6-byte padding   */

                               /* total size (bytes):   32 */
                             } *
>>> ptype *vehicle
type = class fleet::Vehicle {
  public:
    fleet::Vehicle *next;
  protected:
    const char *name_;
  private:
    fleet::Id id_;

  public:
    Vehicle(const char *, fleet::Id);
    ~Vehicle(void);
    virtual int wheels(void) const;
    virtual const fleet::Vehicle & self(void) const;
    const char * name(void) const;
    fleet::Id id(void) const;
    int cost(int) const;
    int cost(double, int) const;
    int cost(const char *) const;
    int cost(const fleet::Vehicle &) const;
}
>>> whatis *vehicle
type = fleet::Vehicle
>>> ptype/o *vehicle
/* offset      |    size */  type = class fleet::Vehicle {
                             public:
/*      8      |       8 */    fleet::Vehicle *next;
                             protected:
/*     16      |       8 */    const char *name_;
                             private:
/*     24      |       2 */    fleet::Id id_;
/* XXX  6-byte padding   */

                               /* total size (bytes):   32 */
                             }
>>> ptype vref
type = class fleet::Vehicle {
  public:
    fleet::Vehicle *next;
  protected:
    const char *name_;
  private:
    fleet::Id id_;

  public:
    Vehicle(const char *, fleet::Id);
    ~Vehicle(void);
    virtual int wheels(void) const;
    virtual const fleet::Vehicle & self(void) const;
    const char * name(void) const;
    fleet::Id id(void) const;
    int cost(int) const;
    int cost(double, int) const;
    int cost(const char *) const;
    int cost(const fleet::Vehicle &) const;
} &
>>> whatis vref
type = fleet::Vehicle &
>>> ptype/o vref
type = class fleet::Vehicle {
                             public:
/*      8      |       8 */    fleet::Vehicle *next;
                             protected:
/*     16      |       8 */    const char *name_;
                             private:
/*     24      |       2 */    fleet::Id id_;
/* XXX  6-byte padding   */

                               /* total size (bytes):   32 */
                             } &
>>> ptype joined
type = struct fleet::Joined : public fleet::Left, public fleet::Right {
    int own;
  public:
    virtual int total(void);
}
>>> whatis joined
type = fleet::Joined
>>> ptype/o joined
/* offset      |    size */  type = struct fleet::Joined : public fleet::Left, public fleet::Right {
/*     28      |       4 */    int own;
/* XXX  8-byte padding   */

                               /* total size (bytes):   40 */
                             }
>>> ptype left
type = struct fleet::Left : public virtual fleet::Base {
  public:
    int left;
    int same;
} *
>>> whatis left
type = fleet::Left *
>>> ptype/o left
type = struct fleet::Left : public virtual fleet::Base {
                             public:
/*      8      |       4 */    int left;
/*     12      |       4 */    int same;
/* XXX  8-byte padding   */

                               /* total size (bytes):   24 */
                             } *
>>> ptype amb
type = struct fleet::Ambiguous : public fleet::One, public fleet::Two {
    int mine;
}
>>> whatis amb
type = fleet::Ambiguous
>>> ptype/o amb
/* offset      |    size */  type = struct fleet::Ambiguous : public fleet::One, public fleet::Two {
/*     16      |       4 */    int mine;

                               /* total size (bytes):   20 */
                             }
>>> ptype hidden
type = struct fleet::(anonymous namespace)::Hidden {
    int h;
  public:
    int get(void) const;
}
>>> whatis hidden
type = fleet::(anonymous namespace)::Hidden
>>> ptype/o hidden
/* offset      |    size */  type = struct fleet::(anonymous namespace)::Hidden {
/*      0      |       4 */    int h;

                               /* total size (bytes):    4 */
                             }
>>> ptype versioned
type = struct fleet::v2::Versioned {
    int version;
}
>>> whatis versioned
type = fleet::v2::Versioned
>>> ptype/o versioned
/* offset      |    size */  type = struct fleet::v2::Versioned {
/*      0      |       4 */    int version;

                               /* total size (bytes):    4 */
                             }
>>> ptype n1
type = struct fleet::deep::deeper::Node {
    fleet::deep::deeper::Node *next;
    int value;
}
>>> whatis n1
type = fleet::deep::deeper::Node
>>> ptype/o n1
/* offset      |    size */  type = struct fleet::deep::deeper::Node {
/*      0      |       8 */    fleet::deep::deeper::Node *next;
/*      8      |       4 */    int value;
/* XXX  4-byte padding   */

                               /* total size (bytes):   16 */
                             }
>>> ptype engine
type = struct fleet::Engine {
    fleet::Fuel fuel;
    unsigned int cylinders : 4;
    int tilt : 3;
    bool turbo : 1;
    fleet::Flags flags;
    union {
        int torque;
        float ratio;
    };
    struct {
        short a;
        short b;
    } gears;
    static fleet::Engine *last;
    static const int limit;
    fleet::Engine::Part part;
  public:
    Engine(void);
    Engine(unsigned int);
    unsigned int size(void) const;
}
>>> whatis engine
type = fleet::Engine
>>> ptype/o engine
/* offset      |    size */  type = struct fleet::Engine {
/*      0      |       1 */    fleet::Fuel fuel;
/*      1: 0   |       4 */    unsigned int cylinders : 4;
/*      1: 4   |       4 */    int tilt : 3;
/*      1: 7   |       1 */    bool turbo : 1;
/* XXX  2-byte hole      */
/*      4      |       4 */    fleet::Flags flags;
/*      8      |       4 */    union {
/*                     4 */        int torque;
/*                     4 */        float ratio;

                                   /* total size (bytes):    4 */
                               };
/*     12      |       4 */    struct {
/*     12      |       2 */        short a;
/*     14      |       2 */        short b;

                                   /* total size (bytes):    4 */
                               } gears;
                               static fleet::Engine *last;
                               static const int limit;
/*     16      |      12 */    class fleet::Engine::Part {
                                 public:
/*     16      |       4 */        int number;
/*     20      |       8 */        struct fleet::Engine::Part::Bolt {
/*     20      |       1 */            char kind;
/* XXX  3-byte hole      */
/*     24      |       4 */            int width;

                                       /* total size (bytes):    8 */
                                   } bolt;

                                   /* total size (bytes):   12 */
                               } part;

                               /* total size (bytes):   28 */
                             }
>>> ptype bolt
type = struct fleet::Engine::Part::Bolt {
    char kind;
    int width;
}
>>> whatis bolt
type = fleet::Engine::Part::Bolt
>>> ptype/o bolt
/* offset      |    size */  type = struct fleet::Engine::Part::Bolt {
/*      0      |       1 */    char kind;
/* XXX  3-byte hole      */
/*      4      |       4 */    int width;

                               /* total size (bytes):    8 */
                             }
>>> ptype fuel
type = enum class fleet::Fuel : unsigned char {fleet::Fuel::none, fleet::Fuel::diesel = 3, fleet::Fuel::electric = 7}
>>> whatis fuel
type = fleet::Fuel
>>> ptype/o fuel
type = enum class fleet::Fuel : unsigned char {fleet::Fuel::none, fleet::Fuel::diesel = 3, fleet::Fuel::electric = 7}
>>> ptype flags
type = enum fleet::Flags : unsigned int {fleet::clean, fleet::dirty, fleet::broken, fleet::late = 4}
>>> whatis flags
type = fleet::Flags
>>> ptype/o flags
type = enum fleet::Flags : unsigned int {fleet::clean, fleet::dirty, fleet::broken, fleet::late = 4}
>>> ptype sg
type = enum fleet::Signed : signed char {fleet::minus = -1, fleet::zero, fleet::plus}
>>> whatis sg
type = fleet::Signed
>>> ptype/o sg
type = enum fleet::Signed : signed char {fleet::minus = -1, fleet::zero, fleet::plus}
>>> whatis grid
type = Grid<int, 3>
>>> whatis dgrid
type = Grid<double, 2>
>>> ptype bgrid
type = struct Grid<bool, 1> [with T = bool] {
    T only;
}
>>> whatis bgrid
type = Grid<bool, 1>
>>> ptype/o bgrid
/* offset      |    size */  type = struct Grid<bool, 1> [with T = bool] {
/*      0      |       1 */    T only;

                               /* total size (bytes):    1 */
                             }
>>> ptype reb
type = struct Grid<int, 3>::Rebound<float> [with U = float] {
    U u;
}
>>> whatis reb
type = Grid<int, 3>::Rebound<float>
>>> ptype/o reb
/* offset      |    size */  type = struct Grid<int, 3>::Rebound<float> [with U = float] {
/*      0      |       4 */    U u;

                               /* total size (bytes):    4 */
                             }
>>> ptype tank
type = struct Tank<(fleet::Fuel)3> {
    int litres;
}
>>> whatis tank
type = Tank<(fleet::Fuel)3>
>>> ptype/o tank
/* offset      |    size */  type = struct Tank<(fleet::Fuel)3> {
/*      0      |       4 */    int litres;

                               /* total size (bytes):    4 */
                             }
>>> whatis nopack
type = Pack<>
>>> ptype derived
type = struct Derived : public Crtp<Derived> {
    int k;
  public:
    int impl(void);
}
>>> whatis derived
type = Derived
>>> ptype/o derived
/* offset      |    size */  type = struct Derived : public Crtp<Derived> {
/*      4      |       4 */    int k;

                               /* total size (bytes):    8 */
                             }
>>> ptype price
type = struct Money {
    long cents;
  public:
    Money(long);
    Money operator+(const Money &) const;
    Money operator-(const Money &) const;
    bool operator==(const Money &) const;
    bool operator>=(const Money &) const;
    Money & operator<<(int);
    long operator[](const char *) const;
    long operator[](int) const;
    operator double(void) const;
    Money operator~(void) const;
    long operator%(int) const;
    Money operator,(int) const;
}
>>> whatis price
type = Money
>>> ptype/o price
/* offset      |    size */  type = struct Money {
/*      0      |       8 */    long cents;

                               /* total size (bytes):    8 */
                             }
>>> ptype p
type = struct Pt {
    int x;
    int y;
  public:
    auto operator<=>(const Pt &) const;
}
>>> whatis p
type = Pt
>>> ptype/o p
/* offset      |    size */  type = struct Pt {
/*      0      |       4 */    int x;
/*      4      |       4 */    int y;

                               /* total size (bytes):    8 */
                             }
>>> ptype word
type = union Word {
    unsigned int u;
    float f;
    unsigned char b[4];
    struct {
        short lo;
        short hi;
    } half;
}
>>> whatis word
type = Word
>>> ptype/o word
/* offset      |    size */  type = union Word {
/*                     4 */    unsigned int u;
/*                     4 */    float f;
/*                     4 */    unsigned char b[4];
/*                     4 */    struct {
/*      0      |       2 */        short lo;
/*      2      |       2 */        short hi;

                                   /* total size (bytes):    4 */
                               } half;

                               /* total size (bytes):    4 */
                             }
>>> ptype empty
type = struct Empty {
    <no data fields>
}
>>> whatis empty
type = Empty
>>> ptype/o empty
/* offset      |    size */  type = struct Empty {
                               <no data fields>

                               /* total size (bytes):    1 */
                             }
>>> ptype packed
type = struct Packed {
    char c;
    Empty e;
    int i;
}
>>> whatis packed
type = Packed
>>> ptype/o packed
/* offset      |    size */  type = struct Packed {
/*      0      |       1 */    char c;
/*      0      |       1 */    struct Empty {
                                   <no data fields>

                                   /* total size (bytes):    1 */
                               } e;
/*      1      |       4 */    int i;

                               /* total size (bytes):    5 */
                             }
>>> ptype flex
type = struct Flex {
    int n;
    char tail[4];
}
>>> whatis flex
type = Flex
>>> ptype/o flex
/* offset      |    size */  type = struct Flex {
/*      0      |       4 */    int n;
/*      4      |       4 */    char tail[4];

                               /* total size (bytes):    8 */
                             }
>>> ptype rec
type = struct Recursive {
    Recursive *self;
    int depth;
    Recursive &ref;
}
>>> whatis rec
type = Recursive
>>> ptype/o rec
/* offset      |    size */  type = struct Recursive {
/*      0      |       8 */    Recursive *self;
/*      8      |       4 */    int depth;
/* XXX  4-byte hole      */
/*     16      |       8 */    Recursive &ref;

                               /* total size (bytes):   24 */
                             }
>>> ptype arr
type = int [5]
>>> whatis arr
type = int [5]
>>> ptype/o arr
type = int [5]
>>> ptype m
type = int [2][3]
>>> whatis m
type = int [2][3]
>>> ptype/o m
type = int [2][3]
>>> ptype aref
type = int (&)[5]
>>> whatis aref
type = int (&)[5]
>>> ptype/o aref
type = int (&)[5]
>>> ptype parr
type = int (*)[5]
>>> ptype/o parr
type = int (*)[5]
>>> ptype fp
type = int (*)(int)
>>> ptype/o fp
type = int (*)(int)
>>> ptype fref
type = int (&)(int)
>>> ptype/o fref
type = int (&)(int)
>>> ptype fn0
type = void (*)(void)
>>> whatis fn0
type = void (*)(void)
>>> ptype/o fn0
type = void (*)(void)
>>> ptype table
type = int (*[2])(int)
>>> whatis table
type = int (*[2])(int)
>>> ptype/o table
type = int (*[2])(int)
>>> ptype pm
type = int fleet::Truck::*
>>> ptype/o pm
type = int fleet::Truck::*
>>> ptype py
type = int Pt::*
>>> ptype/o py
type = int Pt::*
>>> ptype pmf
type = int (fleet::Vehicle::*)(const fleet::Vehicle * const)
>>> whatis pmf
type = int (fleet::Vehicle::*)(const fleet::Vehicle * const)
>>> ptype/o pmf
type = int (fleet::Vehicle::*)(const fleet::Vehicle * const)
>>> ptype pmi
type = int (fleet::Inspector::*)(fleet::Inspector * const, const fleet::Vehicle &, int)
>>> ptype/o pmi
type = int (fleet::Inspector::*)(fleet::Inspector * const, const fleet::Vehicle &, int)
>>> ptype npm
type = int Pt::*
>>> whatis npm
type = int Pt::*
>>> ptype/o npm
type = int Pt::*
>>> ptype cs
type = const char *
>>> whatis cs
type = const char *
>>> ptype/o cs
type = const char *
>>> ptype ws
type = const wchar_t *
>>> ptype/o ws
type = const wchar_t *
>>> ptype us
type = const char16_t *
>>> ptype/o us
type = const char16_t *
>>> ptype c32
type = char32_t
>>> whatis c32
type = char32_t
>>> ptype/o c32
type = char32_t
>>> ptype c8
type = char8_t
>>> whatis c8
type = char8_t
>>> ptype/o c8
type = char8_t
>>> ptype big
type = __int128
>>> whatis big
type = __int128
>>> ptype/o big
type = __int128
>>> ptype ld
type = long double
>>> whatis ld
type = long double
>>> ptype/o ld
type = long double
>>> ptype iref
type = int &
>>> ptype/o iref
type = int &
>>> ptype rref
type = int &&
>>> whatis rref
type = int &&
>>> ptype/o rref
type = int &&
>>> whatis inspector
type = fleet::Inspector
>>> ptype truck.engine
type = struct fleet::Engine {
    fleet::Fuel fuel;
    unsigned int cylinders : 4;
    int tilt : 3;
    bool turbo : 1;
    fleet::Flags flags;
    union {
        int torque;
        float ratio;
    };
    struct {
        short a;
        short b;
    } gears;
    static fleet::Engine *last;
    static const int limit;
    fleet::Engine::Part part;
  public:
    Engine(void);
    Engine(unsigned int);
    unsigned int size(void) const;
}
>>> whatis truck.engine
type = fleet::Engine
>>> ptype/o truck.engine
/* offset      |    size */  type = struct fleet::Engine {
/*      0      |       1 */    fleet::Fuel fuel;
/*      1: 0   |       4 */    unsigned int cylinders : 4;
/*      1: 4   |       4 */    int tilt : 3;
/*      1: 7   |       1 */    bool turbo : 1;
/* XXX  2-byte hole      */
/*      4      |       4 */    fleet::Flags flags;
/*      8      |       4 */    union {
/*                     4 */        int torque;
/*                     4 */        float ratio;

                                   /* total size (bytes):    4 */
                               };
/*     12      |       4 */    struct {
/*     12      |       2 */        short a;
/*     14      |       2 */        short b;

                                   /* total size (bytes):    4 */
                               } gears;
                               static fleet::Engine *last;
                               static const int limit;
/*     16      |      12 */    class fleet::Engine::Part {
                                 public:
/*     16      |       4 */        int number;
/*     20      |       8 */        struct fleet::Engine::Part::Bolt {
/*     20      |       1 */            char kind;
/* XXX  3-byte hole      */
/*     24      |       4 */            int width;

                                       /* total size (bytes):    8 */
                                   } bolt;

                                   /* total size (bytes):   12 */
                               } part;

                               /* total size (bytes):   28 */
                             }
>>> ptype truck.cost
cannot resolve overloaded method `cost': no arguments supplied
>>> whatis truck.cost
cannot resolve overloaded method `cost': no arguments supplied
>>> ptype/o truck.cost
cannot resolve overloaded method `cost': no arguments supplied
>>> ptype truck.wheels
type = int (const fleet::Truck * const)
>>> whatis truck.wheels
type = int (const fleet::Truck * const)
>>> ptype/o truck.wheels
type = int (const fleet::Truck * const)
>>> ptype engine.part
type = class fleet::Engine::Part {
  public:
    int number;
    fleet::Engine::Part::Bolt bolt;
}
>>> whatis engine.part
type = fleet::Engine::Part
>>> ptype/o engine.part
/* offset      |    size */  type = class fleet::Engine::Part {
                             public:
/*      0      |       4 */    int number;
/*      4      |       8 */    struct fleet::Engine::Part::Bolt {
/*      4      |       1 */        char kind;
/* XXX  3-byte hole      */
/*      8      |       4 */        int width;

                                   /* total size (bytes):    8 */
                               } bolt;

                               /* total size (bytes):   12 */
                             }
>>> ptype engine.gears
type = struct {
    short a;
    short b;
}
>>> whatis engine.gears
type = struct {...}
>>> ptype/o engine.gears
/* offset      |    size */  type = struct {
/*      0      |       2 */    short a;
/*      2      |       2 */    short b;

                               /* total size (bytes):    4 */
                             }
>>> whatis price.operator+
type = Money (const Money * const, const Money &)
>>> ptype main
type = int (int, char **)
>>> whatis main
type = int (int, char **)
>>> ptype/o main
type = int (int, char **)
>>> ptype look
type = void (void)
>>> whatis look
type = void (void)
>>> ptype/o look
type = void (void)
>>> ptype increment
type = int (int)
>>> whatis increment
type = int (int)
>>> ptype/o increment
type = int (int)
>>> ptype apply
type = int (int (*)(int), int)
>>> whatis apply
type = int (int (*)(int), int)
>>> ptype/o apply
type = int (int (*)(int), int)
>>> ptype fleet::Truck
type = struct fleet::Truck : public fleet::Vehicle, private fleet::Loaded {
    int axles;
    fleet::Engine engine;
  public:
    Truck(fleet::Id, int);
    virtual int wheels(void) const;
    virtual const fleet::Truck & self(void) const;
}
>>> whatis fleet::Truck
type = fleet::Truck
>>> ptype/o fleet::Truck
/* offset      |    size */  type = struct fleet::Truck : public fleet::Vehicle, private fleet::Loaded {
/*     44      |       4 */    int axles;
/*     48      |      28 */    struct fleet::Engine {
/*     48      |       1 */        fleet::Fuel fuel;
/*     49: 0   |       4 */        unsigned int cylinders : 4;
/*     49: 4   |       4 */        int tilt : 3;
/*     49: 7   |       1 */        bool turbo : 1;
/* XXX  2-byte hole      */
/*     52      |       4 */        fleet::Flags flags;
/*     56      |       4 */        union {
/*                     4 */            int torque;
/*                     4 */            float ratio;

                                       /* total size (bytes):    4 */
                                   };
/*     60      |       4 */        struct {
/*     60      |       2 */            short a;
/*     62      |       2 */            short b;

                                       /* total size (bytes):    4 */
                                   } gears;
                                   static fleet::Engine *last;
                                   static const int limit;
/*     64      |      12 */        class fleet::Engine::Part {
                                     public:
/*     64      |       4 */            int number;
/*     68      |       8 */            struct fleet::Engine::Part::Bolt {
/*     68      |       1 */                char kind;
/* XXX  3-byte hole      */
/*     72      |       4 */                int width;

                                           /* total size (bytes):    8 */
                                       } bolt;

                                       /* total size (bytes):   12 */
                                   } part;

                                   /* total size (bytes):   28 */
                               } engine;
/* XXX  4-byte padding   */

                               /* total size (bytes):   80 */
                             }
>>> ptype fleet::Vehicle
type = class fleet::Vehicle {
  public:
    fleet::Vehicle *next;
  protected:
    const char *name_;
  private:
    fleet::Id id_;

  public:
    Vehicle(const char *, fleet::Id);
    ~Vehicle(void);
    virtual int wheels(void) const;
    virtual const fleet::Vehicle & self(void) const;
    const char * name(void) const;
    fleet::Id id(void) const;
    int cost(int) const;
    int cost(double, int) const;
    int cost(const char *) const;
    int cost(const fleet::Vehicle &) const;
}
>>> whatis fleet::Vehicle
type = fleet::Vehicle
>>> ptype/o fleet::Vehicle
/* offset      |    size */  type = class fleet::Vehicle {
                             public:
/*      8      |       8 */    fleet::Vehicle *next;
                             protected:
/*     16      |       8 */    const char *name_;
                             private:
/*     24      |       2 */    fleet::Id id_;
/* XXX  6-byte padding   */

                               /* total size (bytes):   32 */
                             }
>>> ptype Truck
type = struct fleet::Truck : public fleet::Vehicle, private fleet::Loaded {
    int axles;
    fleet::Engine engine;
  public:
    Truck(fleet::Id, int);
    virtual int wheels(void) const;
    virtual const fleet::Truck & self(void) const;
}
>>> whatis Truck
type = fleet::Truck
>>> ptype/o Truck
/* offset      |    size */  type = struct fleet::Truck : public fleet::Vehicle, private fleet::Loaded {
/*     44      |       4 */    int axles;
/*     48      |      28 */    struct fleet::Engine {
/*     48      |       1 */        fleet::Fuel fuel;
/*     49: 0   |       4 */        unsigned int cylinders : 4;
/*     49: 4   |       4 */        int tilt : 3;
/*     49: 7   |       1 */        bool turbo : 1;
/* XXX  2-byte hole      */
/*     52      |       4 */        fleet::Flags flags;
/*     56      |       4 */        union {
/*                     4 */            int torque;
/*                     4 */            float ratio;

                                       /* total size (bytes):    4 */
                                   };
/*     60      |       4 */        struct {
/*     60      |       2 */            short a;
/*     62      |       2 */            short b;

                                       /* total size (bytes):    4 */
                                   } gears;
                                   static fleet::Engine *last;
                                   static const int limit;
/*     64      |      12 */        class fleet::Engine::Part {
                                     public:
/*     64      |       4 */            int number;
/*     68      |       8 */            struct fleet::Engine::Part::Bolt {
/*     68      |       1 */                char kind;
/* XXX  3-byte hole      */
/*     72      |       4 */                int width;

                                           /* total size (bytes):    8 */
                                       } bolt;

                                       /* total size (bytes):   12 */
                                   } part;

                                   /* total size (bytes):   28 */
                               } engine;
/* XXX  4-byte padding   */

                               /* total size (bytes):   80 */
                             }
>>> ptype Vehicle
type = class fleet::Vehicle {
  public:
    fleet::Vehicle *next;
  protected:
    const char *name_;
  private:
    fleet::Id id_;

  public:
    Vehicle(const char *, fleet::Id);
    ~Vehicle(void);
    virtual int wheels(void) const;
    virtual const fleet::Vehicle & self(void) const;
    const char * name(void) const;
    fleet::Id id(void) const;
    int cost(int) const;
    int cost(double, int) const;
    int cost(const char *) const;
    int cost(const fleet::Vehicle &) const;
}
>>> whatis Vehicle
type = fleet::Vehicle
>>> ptype/o Vehicle
/* offset      |    size */  type = class fleet::Vehicle {
                             public:
/*      8      |       8 */    fleet::Vehicle *next;
                             protected:
/*     16      |       8 */    const char *name_;
                             private:
/*     24      |       2 */    fleet::Id id_;
/* XXX  6-byte padding   */

                               /* total size (bytes):   32 */
                             }
>>> ptype fleet::Engine::Part
type = class fleet::Engine::Part {
  public:
    int number;
    fleet::Engine::Part::Bolt bolt;
}
>>> whatis fleet::Engine::Part
type = fleet::Engine::Part
>>> ptype/o fleet::Engine::Part
/* offset      |    size */  type = class fleet::Engine::Part {
                             public:
/*      0      |       4 */    int number;
/*      4      |       8 */    struct fleet::Engine::Part::Bolt {
/*      4      |       1 */        char kind;
/* XXX  3-byte hole      */
/*      8      |       4 */        int width;

                                   /* total size (bytes):    8 */
                               } bolt;

                               /* total size (bytes):   12 */
                             }
>>> ptype fleet::Engine::Part::Bolt
type = struct fleet::Engine::Part::Bolt {
    char kind;
    int width;
}
>>> whatis fleet::Engine::Part::Bolt
type = fleet::Engine::Part::Bolt
>>> ptype/o fleet::Engine::Part::Bolt
/* offset      |    size */  type = struct fleet::Engine::Part::Bolt {
/*      0      |       1 */    char kind;
/* XXX  3-byte hole      */
/*      4      |       4 */    int width;

                               /* total size (bytes):    8 */
                             }
>>> ptype Engine::Part
type = class fleet::Engine::Part {
  public:
    int number;
    fleet::Engine::Part::Bolt bolt;
}
>>> whatis Engine::Part
type = fleet::Engine::Part
>>> ptype/o Engine::Part
/* offset      |    size */  type = class fleet::Engine::Part {
                             public:
/*      0      |       4 */    int number;
/*      4      |       8 */    struct fleet::Engine::Part::Bolt {
/*      4      |       1 */        char kind;
/* XXX  3-byte hole      */
/*      8      |       4 */        int width;

                                   /* total size (bytes):    8 */
                               } bolt;

                               /* total size (bytes):   12 */
                             }
>>> ptype fleet::Fuel
type = enum class fleet::Fuel : unsigned char {fleet::Fuel::none, fleet::Fuel::diesel = 3, fleet::Fuel::electric = 7}
>>> whatis fleet::Fuel
type = fleet::Fuel
>>> ptype/o fleet::Fuel
type = enum class fleet::Fuel : unsigned char {fleet::Fuel::none, fleet::Fuel::diesel = 3, fleet::Fuel::electric = 7}
>>> ptype fleet::Flags
type = enum fleet::Flags : unsigned int {fleet::clean, fleet::dirty, fleet::broken, fleet::late = 4}
>>> whatis fleet::Flags
type = fleet::Flags
>>> ptype/o fleet::Flags
type = enum fleet::Flags : unsigned int {fleet::clean, fleet::dirty, fleet::broken, fleet::late = 4}
>>> ptype Flags
type = enum fleet::Flags : unsigned int {fleet::clean, fleet::dirty, fleet::broken, fleet::late = 4}
>>> whatis Flags
type = fleet::Flags
>>> ptype/o Flags
type = enum fleet::Flags : unsigned int {fleet::clean, fleet::dirty, fleet::broken, fleet::late = 4}
>>> ptype fleet::Id
type = unsigned short
>>> whatis fleet::Id
type = unsigned short
>>> ptype/o fleet::Id
type = unsigned short
>>> ptype Money
type = struct Money {
    long cents;
  public:
    Money(long);
    Money operator+(const Money &) const;
    Money operator-(const Money &) const;
    bool operator==(const Money &) const;
    bool operator>=(const Money &) const;
    Money & operator<<(int);
    long operator[](const char *) const;
    long operator[](int) const;
    operator double(void) const;
    Money operator~(void) const;
    long operator%(int) const;
    Money operator,(int) const;
}
>>> whatis Money
type = Money
>>> ptype/o Money
/* offset      |    size */  type = struct Money {
/*      0      |       8 */    long cents;

                               /* total size (bytes):    8 */
                             }
>>> ptype Pt
type = struct Pt {
    int x;
    int y;
  public:
    auto operator<=>(const Pt &) const;
}
>>> whatis Pt
type = Pt
>>> ptype/o Pt
/* offset      |    size */  type = struct Pt {
/*      0      |       4 */    int x;
/*      4      |       4 */    int y;

                               /* total size (bytes):    8 */
                             }
>>> ptype Word
type = union Word {
    unsigned int u;
    float f;
    unsigned char b[4];
    struct {
        short lo;
        short hi;
    } half;
}
>>> whatis Word
type = Word
>>> ptype/o Word
/* offset      |    size */  type = union Word {
/*                     4 */    unsigned int u;
/*                     4 */    float f;
/*                     4 */    unsigned char b[4];
/*                     4 */    struct {
/*      0      |       2 */        short lo;
/*      2      |       2 */        short hi;

                                   /* total size (bytes):    4 */
                               } half;

                               /* total size (bytes):    4 */
                             }
>>> whatis Gen
type = Gen
>>> whatis Grid<int,3>
type = Grid<int, 3>
>>> whatis Grid<double,2>
type = Grid<double, 2>
>>> whatis Pack<>
type = Pack<>
>>> ptype Crtp<Derived>
type = struct Crtp<Derived> [with D = Derived] {
    int plain;
  public:
    int call(void);
}
>>> whatis Crtp<Derived>
type = Crtp<Derived>
>>> ptype/o Crtp<Derived>
/* offset      |    size */  type = struct Crtp<Derived> [with D = Derived] {
/*      0      |       4 */    int plain;

                               /* total size (bytes):    4 */
                             }
>>> ptype maximum<int>
type = int (int, int)
>>> whatis maximum<int>
type = int (int, int)
>>> ptype/o maximum<int>
type = int (int, int)
>>> ptype kind_of<Pt>
type = int (Pt)
>>> whatis kind_of<Pt>
type = int (Pt)
>>> ptype/o kind_of<Pt>
type = int (Pt)
>>> ptype fd::Node
type = struct fleet::deep::deeper::Node {
    fleet::deep::deeper::Node *next;
    int value;
}
>>> whatis fd::Node
type = fleet::deep::deeper::Node
>>> ptype/o fd::Node
/* offset      |    size */  type = struct fleet::deep::deeper::Node {
/*      0      |       8 */    fleet::deep::deeper::Node *next;
/*      8      |       4 */    int value;
/* XXX  4-byte padding   */

                               /* total size (bytes):   16 */
                             }
>>> ptype fleet::deep::deeper::Node
type = struct fleet::deep::deeper::Node {
    fleet::deep::deeper::Node *next;
    int value;
}
>>> whatis fleet::deep::deeper::Node
type = fleet::deep::deeper::Node
>>> ptype/o fleet::deep::deeper::Node
/* offset      |    size */  type = struct fleet::deep::deeper::Node {
/*      0      |       8 */    fleet::deep::deeper::Node *next;
/*      8      |       4 */    int value;
/* XXX  4-byte padding   */

                               /* total size (bytes):   16 */
                             }
>>> whatis fleet::Inspector
type = fleet::Inspector
>>> ptype Grid<int,3>::Rebound<float>
type = struct Grid<int, 3>::Rebound<float> [with U = float] {
    U u;
}
>>> whatis Grid<int,3>::Rebound<float>
type = Grid<int, 3>::Rebound<float>
>>> ptype/o Grid<int,3>::Rebound<float>
/* offset      |    size */  type = struct Grid<int, 3>::Rebound<float> [with U = float] {
/*      0      |       4 */    U u;

                               /* total size (bytes):    4 */
                             }
>>> ptype struct Pt
type = struct Pt {
    int x;
    int y;
  public:
    auto operator<=>(const Pt &) const;
}
>>> whatis struct Pt
type = Pt
>>> ptype/o struct Pt
/* offset      |    size */  type = struct Pt {
/*      0      |       4 */    int x;
/*      4      |       4 */    int y;

                               /* total size (bytes):    8 */
                             }
>>> ptype class Money
type = struct Money {
    long cents;
  public:
    Money(long);
    Money operator+(const Money &) const;
    Money operator-(const Money &) const;
    bool operator==(const Money &) const;
    bool operator>=(const Money &) const;
    Money & operator<<(int);
    long operator[](const char *) const;
    long operator[](int) const;
    operator double(void) const;
    Money operator~(void) const;
    long operator%(int) const;
    Money operator,(int) const;
}
>>> whatis class Money
type = Money
>>> ptype/o class Money
/* offset      |    size */  type = struct Money {
/*      0      |       8 */    long cents;

                               /* total size (bytes):    8 */
                             }
>>> ptype union Word
type = union Word {
    unsigned int u;
    float f;
    unsigned char b[4];
    struct {
        short lo;
        short hi;
    } half;
}
>>> whatis union Word
type = Word
>>> ptype/o union Word
/* offset      |    size */  type = union Word {
/*                     4 */    unsigned int u;
/*                     4 */    float f;
/*                     4 */    unsigned char b[4];
/*                     4 */    struct {
/*      0      |       2 */        short lo;
/*      2      |       2 */        short hi;

                                   /* total size (bytes):    4 */
                               } half;

                               /* total size (bytes):    4 */
                             }
>>> ptype enum fleet::Fuel
type = enum class fleet::Fuel : unsigned char {fleet::Fuel::none, fleet::Fuel::diesel = 3, fleet::Fuel::electric = 7}
>>> whatis enum fleet::Fuel
type = fleet::Fuel
>>> ptype/o enum fleet::Fuel
type = enum class fleet::Fuel : unsigned char {fleet::Fuel::none, fleet::Fuel::diesel = 3, fleet::Fuel::electric = 7}
>>> ptype unsigned long
type = unsigned long
>>> whatis unsigned long
type = unsigned long
>>> ptype/o unsigned long
type = unsigned long
>>> ptype char
type = char
>>> whatis char
type = char
>>> ptype/o char
type = char
>>> ptype int*
type = int *
>>> whatis int*
type = int *
>>> ptype/o int*
type = int *
>>> ptype Pt*
type = struct Pt {
    int x;
    int y;
  public:
    auto operator<=>(const Pt &) const;
} *
>>> whatis Pt*
type = Pt *
>>> ptype/o Pt*
type = struct Pt {
/*      0      |       4 */    int x;
/*      4      |       4 */    int y;

                               /* total size (bytes):    8 */
                             } *
>>> ptype int[3]
type = int [3]
>>> whatis int[3]
type = int [3]
>>> ptype/o int[3]
type = int [3]
>>> ptype Pt**
type = struct Pt {
    int x;
    int y;
  public:
    auto operator<=>(const Pt &) const;
} **
>>> whatis Pt**
type = Pt **
>>> ptype/o Pt**
type = struct Pt {
/*      0      |       4 */    int x;
/*      4      |       4 */    int y;

                               /* total size (bytes):    8 */
                             } **
>>> ptype fleet::Truck*
type = struct fleet::Truck : public fleet::Vehicle, private fleet::Loaded {
    int axles;
    fleet::Engine engine;
  public:
    Truck(fleet::Id, int);
    virtual int wheels(void) const;
    virtual const fleet::Truck & self(void) const;
} *
>>> whatis fleet::Truck*
type = fleet::Truck *
>>> ptype/o fleet::Truck*
type = struct fleet::Truck : public fleet::Vehicle, private fleet::Loaded {
/*     44      |       4 */    int axles;
/*     48      |      28 */    struct fleet::Engine {
/*     48      |       1 */        fleet::Fuel fuel;
/*     49: 0   |       4 */        unsigned int cylinders : 4;
/*     49: 4   |       4 */        int tilt : 3;
/*     49: 7   |       1 */        bool turbo : 1;
/* XXX  2-byte hole      */
/*     52      |       4 */        fleet::Flags flags;
/*     56      |       4 */        union {
/*                     4 */            int torque;
/*                     4 */            float ratio;

                                       /* total size (bytes):    4 */
                                   };
/*     60      |       4 */        struct {
/*     60      |       2 */            short a;
/*     62      |       2 */            short b;

                                       /* total size (bytes):    4 */
                                   } gears;
                                   static fleet::Engine *last;
                                   static const int limit;
/*     64      |      12 */        class fleet::Engine::Part {
                                     public:
/*     64      |       4 */            int number;
/*     68      |       8 */            struct fleet::Engine::Part::Bolt {
/*     68      |       1 */                char kind;
/* XXX  3-byte hole      */
/*     72      |       4 */                int width;

                                           /* total size (bytes):    8 */
                                       } bolt;

                                       /* total size (bytes):   12 */
                                   } part;

                                   /* total size (bytes):   28 */
                               } engine;
/* XXX  4-byte padding   */

                               /* total size (bytes):   80 */
                             } *
>>> ptype Empty
type = struct Empty {
    <no data fields>
}
>>> whatis Empty
type = Empty
>>> ptype/o Empty
/* offset      |    size */  type = struct Empty {
                               <no data fields>

                               /* total size (bytes):    1 */
                             }
>>> ptype Packed
type = struct Packed {
    char c;
    Empty e;
    int i;
}
>>> whatis Packed
type = Packed
>>> ptype/o Packed
/* offset      |    size */  type = struct Packed {
/*      0      |       1 */    char c;
/*      0      |       1 */    struct Empty {
                                   <no data fields>

                                   /* total size (bytes):    1 */
                               } e;
/*      1      |       4 */    int i;

                               /* total size (bytes):    5 */
                             }
>>> ptype Joined
type = struct fleet::Joined : public fleet::Left, public fleet::Right {
    int own;
  public:
    virtual int total(void);
}
>>> whatis Joined
type = fleet::Joined
>>> ptype/o Joined
/* offset      |    size */  type = struct fleet::Joined : public fleet::Left, public fleet::Right {
/*     28      |       4 */    int own;
/* XXX  8-byte padding   */

                               /* total size (bytes):   40 */
                             }
>>> ptype Left
type = struct fleet::Left : public virtual fleet::Base {
  public:
    int left;
    int same;
}
>>> whatis Left
type = fleet::Left
>>> ptype/o Left
/* offset      |    size */  type = struct fleet::Left : public virtual fleet::Base {
                             public:
/*      8      |       4 */    int left;
/*     12      |       4 */    int same;
/* XXX  8-byte padding   */

                               /* total size (bytes):   24 */
                             }
>>> ptype fleet::Left
type = struct fleet::Left : public virtual fleet::Base {
  public:
    int left;
    int same;
}
>>> whatis fleet::Left
type = fleet::Left
>>> ptype/o fleet::Left
/* offset      |    size */  type = struct fleet::Left : public virtual fleet::Base {
                             public:
/*      8      |       4 */    int left;
/*     12      |       4 */    int same;
/* XXX  8-byte padding   */

                               /* total size (bytes):   24 */
                             }
>>> ptype fleet::Joined
type = struct fleet::Joined : public fleet::Left, public fleet::Right {
    int own;
  public:
    virtual int total(void);
}
>>> whatis fleet::Joined
type = fleet::Joined
>>> ptype/o fleet::Joined
/* offset      |    size */  type = struct fleet::Joined : public fleet::Left, public fleet::Right {
/*     28      |       4 */    int own;
/* XXX  8-byte padding   */

                               /* total size (bytes):   40 */
                             }
>>> ptype fleet::Base
type = struct fleet::Base {
    int common;
    int same;
    static int shared;
}
>>> whatis fleet::Base
type = fleet::Base
>>> ptype/o fleet::Base
/* offset      |    size */  type = struct fleet::Base {
/*      0      |       4 */    int common;
/*      4      |       4 */    int same;
                               static int shared;

                               /* total size (bytes):    8 */
                             }
>>> ptype Recursive
type = struct Recursive {
    Recursive *self;
    int depth;
    Recursive &ref;
}
>>> whatis Recursive
type = Recursive
>>> ptype/o Recursive
/* offset      |    size */  type = struct Recursive {
/*      0      |       8 */    Recursive *self;
/*      8      |       4 */    int depth;
/* XXX  4-byte hole      */
/*     16      |       8 */    Recursive &ref;

                               /* total size (bytes):   24 */
                             }
>>> ptype nosuch
No symbol "nosuch" in current context.
>>> whatis nosuch
No symbol "nosuch" in current context.
>>> ptype/o nosuch
No symbol "nosuch" in current context.
>>> ptype struct nosuch
No struct type named nosuch.
>>> whatis struct nosuch
No struct type named nosuch.
>>> ptype/o struct nosuch
No struct type named nosuch.
>>> ptype 5
type = int
>>> whatis 5
type = int
>>> ptype/o 5
type = int
>>> ptype 1.5
type = double
>>> whatis 1.5
type = double
>>> ptype/o 1.5
type = double
>>> ptype 'c'
type = char
>>> whatis 'c'
type = char
>>> ptype/o 'c'
type = char
>>> ptype sizeof(int)
type = int
>>> whatis sizeof(int)
type = int
>>> ptype/o sizeof(int)
type = int
>>> ptype counter
type = int
>>> whatis counter
type = int
>>> ptype/o counter
type = int
>>> ptype rates
type = double [3]
>>> whatis rates
type = double [3]
>>> ptype/o rates
type = double [3]
>>> ptype words
type = const char * const[3]
>>> whatis words
type = const char * const[3]
>>> ptype/o words
type = const char * const[3]
>>> ptype answer
type = const int
>>> whatis answer
type = const int
>>> ptype/o answer
type = const int
>>> ptype per_thread
type = int
>>> whatis per_thread
type = int
>>> ptype/o per_thread
type = int
>>> ptype label
type = const char *(int)
>>> whatis label
type = const char *(int)
>>> ptype/o label
type = const char *(int)
>>> ptype shift
type = char (char)
>>> whatis shift
type = char (char)
>>> ptype/o shift
type = char (char)
>>> whatis Money::operator+
type = Money (const Money * const, const Money &)
>>> ptype Truck::wheels
type = int (const fleet::Truck * const)
>>> whatis Truck::wheels
type = int (const fleet::Truck * const)
>>> ptype/o Truck::wheels
type = int (const fleet::Truck * const)
>>> whatis fleet::Truck::self
type = const fleet::Truck &(const fleet::Truck * const)
>>> ptype Grid<int,3>::sum
type = int (const Grid<int, 3> * const)
>>> whatis Grid<int,3>::sum
type = int (const Grid<int, 3> * const)
>>> ptype/o Grid<int,3>::sum
type = int (const Grid<int, 3> * const)
>>> p sizeof(fd::Node)
16
>>> p *(fd::Node *)&n1
{next = ADDRESS, value = 1}
>>> p sizeof(Engine::Part)
12
>>> p (Engine::Part *)&engine.part
(fleet::Engine::Part *) ADDRESS
>>> whatis Engine::Part::Bolt
type = fleet::Engine::Part::Bolt
>>> ptype cip
type = int * const
>>> ptype argv
type = char **
>>> ptype *argv
type = char *
>>> p (fleet::Vehicle &)truck
(fleet::Vehicle &) @ADDRESS: {_vptr.Vehicle = ADDRESS <vtable for fleet::Truck+16>, next = ADDRESS, name_ = ADDRESS "truck", id_ = 17}
>>> p *(fleet::Truck *)vehicle
{<fleet::Vehicle> = {_vptr.Vehicle = ADDRESS <vtable for fleet::Truck+16>, next = ADDRESS, name_ = ADDRESS "truck", id_ = 17}, <fleet::Loaded> = {_vptr.Loaded = ADDRESS <vtable for fleet::Truck+64>, load = 5}, axles = 3, engine = {fuel = fleet::Fuel::diesel, cylinders = 8, tilt = -2, turbo = true, flags = (fleet::dirty | fleet::late), {torque = 300, ratio = 4.20389539e-43}, gears = {a = 1, b = 2}, static last = ADDRESS, static limit = 12, part = {number = 41, bolt = {kind = 109 'm', width = 8}}}}
>>> p ((fleet::Truck *)vehicle)->axles
3
>>> p static_cast<fleet::Truck *>(vehicle)->axles
3
>>> p dynamic_cast<fleet::Bike *>(vehicle)
(fleet::Bike *) ADDRESS
>>> p dynamic_cast<fleet::Truck *>(other)
(fleet::Truck *) ADDRESS
>>> p reinterpret_cast<long>(vehicle) == (long)&truck
true
>>> p const_cast<fleet::Vehicle *>(cv)->next
(fleet::Vehicle *) ADDRESS
>>> p (Loaded *)&truck
(fleet::Loaded *) ADDRESS
>>> p (fleet::Truck *)loaded
(fleet::Truck *) ADDRESS
>>> p loaded->load
5
>>> p truck.*pm
3
>>> p (vehicle->*pmf)()
6
>>> p (truck.*pmf)()
6
>>> p p.*py
-4
>>> p (&p)->*py
-4
>>> p pm
&fleet::Truck::axles
>>> p &fleet::Truck::axles
&fleet::Truck::axles
>>> p &fleet::Engine::part
&fleet::Engine::part
>>> p &Pt::x
&Pt::x
>>> p &fleet::Vehicle::name
(const char *(fleet::Vehicle::*)(const fleet::Vehicle * const)) ADDRESS <fleet::Vehicle::name() const>
>>> p *arr@3
{1, 2, 3}
>>> p arr[1]@2
{2, 3}
>>> p *ip@2
{2, 3}
>>> p *m
{1, 2, 3}
>>> p **m
1
>>> p m[1][2]
6
>>> p &m[1]
(int (*)[3]) ADDRESS
>>> p *&m[1]
{4, 5, 6}
>>> p arr == ip
false
>>> p ip - arr
1
>>> p &arr[4] - &arr[1]
3
>>> p ip[-1]
1
>>> p *(ip + 1)
3
>>> p ip++
(int *) ADDRESS
>>> p *--ip
2
>>> p arr[2] = 30
30
>>> p arr
{1, 2, 30, 4, 5}
>>> p arr[2] += 3
33
>>> p arr[2]++
33
>>> p ++arr[2]
35
>>> p engine.cylinders = 9
9
>>> p engine.tilt = -1
-1
>>> p engine.flags = 2
fleet::broken
>>> p engine.fuel = fleet::Fuel::none
fleet::Fuel::none
>>> p yes = 0
false
>>> p buf[0] = 'J'
74 'J'
>>> p buf
"Jello\tw\001\000\000\000\000\000\000\000"
>>> p dbl = 2
2
>>> p dbl
2
>>> p sizeof(engine)
28
>>> p sizeof engine.part
12
>>> p sizeof(fleet::Truck)
80
>>> p sizeof(int[3])
12
>>> p sizeof(unsigned long)
8
>>> p alignof(double)
8
>>> p $x = 5
5
>>> p $x * 2
10
>>> p $x++
5
>>> p $x
6
>>> p $sp == $rsp
true
>>> p counter
4
>>> p ::counter
4
>>> p 'fleet.cc'::counter
4
>>> p main::truck.axles
3
>>> p rates
{0.5, 1.25, -3}
>>> p rates[1] * 2
2.5
>>> p -rates[2]
3
>>> p words[0]
ADDRESS "alpha"
>>> p *words@2
{ADDRESS "alpha", ADDRESS "be\"ta"}
>>> p words
{ADDRESS "alpha", ADDRESS "be\"ta", ADDRESS}
>>> p answer
42
>>> p per_thread
31
>>> p apply(increment, 3)
4
>>> p apply(fp, 4)
5
>>> p fp(4)
5
>>> p (*fp)(4)
5
>>> p table[0](7)
8
>>> p increment
{int (int)} ADDRESS <increment(int)>
>>> p *increment
{int (int)} ADDRESS <increment(int)>
>>> p &increment
(int (*)(int)) ADDRESS <increment(int)>
>>> p shift('a')
98 'b'
>>> p halve(3)
1.5
>>> p negate(1)
false
>>> p label(0)
ADDRESS "no"
>>> p label(1)
ADDRESS "yes"
>>> p mirror(p)
{x = -4, y = 3}
>>> p mirror(p).x
-4
>>> p refuel(fuel)
fleet::Fuel::none
>>> p refer()
(int &) @ADDRESS: 4
>>> p nothing()
void
>>> p argc
1
>>> p argv[0] == 0
false
>>> p fn0()
void
>>> p maximum<int>(3, 4)
4
>>> p inspector.inspect
{int (fleet::Inspector * const, const fleet::Vehicle &, int)} ADDRESS <fleet::Inspector::inspect(fleet::Vehicle const&, int)>
>>> p 1 ? 2 : 3
2
>>> p 5 / 2
2
>>> p 5 / 2.0
2.5
>>> p 5 % 3
2
>>> p 1ull << 40
1099511627776
>>> p -7 / 2
-3
>>> p -7 % 3
-1
>>> p 0x10 | 3
19
>>> p 017
15
>>> p 0b101
5
>>> p 'a' + 1
98
>>> p 'a'
97 'a'
>>> p L'a'
97 L'a'
>>> p "abc"
"abc"
>>> p sizeof("abc")
4
>>> p "a" "b"
"ab"
>>> p 1.5e3
1500
>>> p 1.5f
1.5
>>> p 10 > 9 > 8
false
>>> p 1 == 1.0
true
>>> p !5
false
>>> p ~0
-1
>>> p ~0u
4294967295
>>> p -1u
4294967295
>>> p 4294967295 + 1
4294967296
>>> p 2147483647 + 1
-2147483648
>>> p 5,6
6
>>> p (char)97
97 'a'
>>> p (bool)5
true
>>> p (short)70000
4464
>>> p (float)1/3
0.333333343
>>> p (unsigned char)300
44 ','
>>> p 1/0
Division by zero
>>> p 1.0/0
inf
>>> p nosuch
No symbol "nosuch" in current context.
>>> p nosuch.x
No symbol "nosuch" in current context.
>>> p truck.nosuch
There is no member or method named nosuch.
>>> p truck->axles
3
>>> p vehicle.next
(fleet::Vehicle *) ADDRESS
>>> p &5
Attempt to take address of value not located in memory.
>>> p arr[
A syntax error in expression, near `'.
>>> p )
A syntax error in expression, near `)'.
>>> p 1 +
A syntax error in expression, near `'.
>>> p truck.
A syntax error in expression, near `'.
>>> p "unterminated
Unterminated string in expression.
>>> p 08
Invalid number "08".
>>> p 1.2.3
A syntax error in expression, near `.3'.
>>> p arr[1000000]
Cannot access memory at address ADDRESS
>>> p *(int *)0
Cannot access memory at address ADDRESS
>>> p *nullp
Cannot access memory at address ADDRESS
>>> p nullp->x
Attempt to extract a component of a value that is not a structure pointer.
>>> p ((fleet::Truck *)0)->axles
Cannot access memory at address ADDRESS
>>> p &((fleet::Truck *)0)->axles
(int *) ADDRESS
>>> x/2dw arr
ADDRESS:	1	2
>>> x/s cs
ADDRESS:	"caf\303\251"
>>> x/2s buf
ADDRESS:	"Jello\tw\001"
ADDRESS:	""
>>> x/3xb bytes
ADDRESS:	ADDRESS	ADDRESS	ADDRESS
>>> x/c buf
ADDRESS:	74 'J'
>>> x/f &dbl
ADDRESS:	2
>>> x/2wx &engine
ADDRESS:	ADDRESS	ADDRESS
>>> output/x arr
{ADDRESS, ADDRESS, ADDRESS, ADDRESS, ADDRESS}
>>> call increment(5)
6
>>> call nothing()

>>> print/x arr[1]
ADDRESS
>>> inspect arr
{1, 2, 35, 4, 5}
>>> print -elements 2 -- arr
{1, 2...}
>>> print -pretty on -- p
{
  x = 3,
  y = -4
}
>>> set var counter = 11

>>> print counter = 12
12
>>> whatis counter + 1L
type = long
>>> whatis 1 ? 2 : 3.0
type = int
>>> whatis 'a' + 'b'
type = int
>>> whatis arr[1] + 1.0f
type = float
>>> whatis &arr
type = int (*)[5]
>>> whatis *&arr
type = int [5]
>>> whatis ip - arr
type = long
>>> whatis truck.axles
type = int
>>> whatis (char)1
type = char
>>> whatis apply(fp, 1)
type = int
>>> whatis mirror(p)
type = Pt
>>> whatis fleet::Fuel::diesel
type = fleet::Fuel
>>> whatis fleet::dirty
type = fleet::Flags
>>> whatis engine.cylinders
type = unsigned int
>>> whatis truck.*pm
type = int
>>> whatis 1 == 1
type = bool
>>> whatis true
type = bool
>>> whatis "abc"
type = char [4]
>>> whatis L'a'
type = wchar_t
>>> whatis 1.5f
type = float
>>> whatis 5ul
type = unsigned long
>>> whatis this
No symbol "this" in current context.
