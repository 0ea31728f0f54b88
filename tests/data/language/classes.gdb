>>> p sq
{<geo::Shape> = {_vptr.Shape = ADDRESS <vtable for geo::Square+16>, id = 10, static count = 4, static limit = 9, kind = geo::Shape::large}, <geo::Colored> = {_vptr.Colored = ADDRESS <vtable for geo::Square+64>, color = geo::Color::blue}, side = 4}
>>> p *sp
{_vptr.Shape = ADDRESS <vtable for geo::Square+16>, id = 10, static count = 4, static limit = 9, kind = geo::Shape::large}
>>> p sr
(geo::Shape &) @ADDRESS: {_vptr.Shape = ADDRESS <vtable for geo::Square+16>, id = 10, static count = 4, static limit = 9, kind = geo::Shape::large}
>>> p csr
(const geo::Shape &) @ADDRESS: {_vptr.Shape = ADDRESS <vtable for geo::Square+16>, id = 10, static count = 4, static limit = 9, kind = geo::Shape::large}
>>> p sp
(geo::Shape *) ADDRESS
>>> p cp
(geo::Colored *) ADDRESS
>>> p *cp
{_vptr.Colored = ADDRESS <vtable for geo::Square+64>, color = geo::Color::blue}
>>> p plain
{_vptr.Shape = ADDRESS <vtable for geo::Shape+16>, id = 3, static count = 4, static limit = 9, kind = geo::Shape::large}
>>> p sq.id
10
>>> p sq.side
4
>>> p sq.color
geo::Color::blue
>>> p sp->id
10
>>> p sp->kind
geo::Shape::large
>>> p sq.area()
16
>>> p sp->area()
16
>>> p sr.area()
16
>>> p csr.area()
16
>>> p plain.area()
0
>>> p sp->name()
ADDRESS "square"
>>> p sq.name()
ADDRESS "square"
>>> p sq.scaled(2)
Too few arguments in function call.
>>> p sq.scaled(2, 5)
25
>>> p sq.hidden()
10
>>> p sq.self()
14
>>> p cp->tint()
geo::Color::blue
>>> p sqp->area()
16
>>> p sq.Shape::id
10
>>> p sp->count
4
>>> p sq.count
4
>>> p Shape::count
4
>>> p geo::Shape::count
4
>>> p geo::Shape::total(2)
6
>>> p sq.total(3)
7
>>> p Shape::total(2)
6
>>> p geo::Shape::limit
9
>>> p Shape::limit
9
>>> p geo::Color::red
geo::Color::red
>>> p Color::green
geo::Color::green
>>> p Color::green == color
true
>>> p color == geo::Color::blue
false
>>> p color
geo::Color::green
>>> p (int)color
5
>>> p pl
geo::two
>>> p two
geo::two
>>> p geo::one
geo::one
>>> p kind
geo::Shape::small
>>> p Shape::small
geo::Shape::small
>>> p geo::Shape::small
geo::Shape::small
>>> p geo::Shape::large
geo::Shape::large
>>> p (geo::Shape::Kind)1
geo::Shape::large
>>> p (geo::Color)5
geo::Color::green
>>> p (Color)5
geo::Color::green
>>> p geo::inner::depth
3
>>> p geo::inner::deeper(4)
7
>>> p alias::depth
3
>>> p geo::v1::versioned
12
>>> p geo::free_function(4)
5
>>> p free_function(4)
5
>>> p global
5
>>> p vb
{<VLeft> = {<VBase> = {_vptr.VBase = ADDRESS <vtable for VBoth+104>, v = 77}, _vptr.VLeft = ADDRESS <vtable for VBoth+24>, l = 1}, <VRight> = {_vptr.VRight = ADDRESS <vtable for VBoth+64>, r = 2}, b = 3}
>>> p *vbp
{_vptr.VBase = ADDRESS <vtable for VBoth+104>, v = 77}
>>> p vb.v
77
>>> p vbp->v
77
>>> p vb.sum()
83
>>> p vb.in_base()
77
>>> p vbp->in_base()
77
>>> p vlp->v
77
>>> p *vlp
{<VBase> = {_vptr.VBase = ADDRESS <vtable for VBoth+104>, v = 77}, _vptr.VLeft = ADDRESS <vtable for VBoth+24>, l = 1}
>>> p a
{x = 4, y = 6}
>>> p a + b
{x = 7, y = 10}
>>> p b - a
Cannot resolve function operator- to any overloaded instance
>>> p -a
{x = -4, y = -6}
>>> p a[0]
4
>>> p a[1]
6
>>> p *a
24
>>> p a == b
false
>>> p a == a
true
>>> p !a
false
>>> p a * 2
{x = 8, y = 12}
>>> p a * 2.0
{x = 8, y = 12}
>>> p a < b
false
>>> p a > b
No symbol "operator>" in current context.
>>> p sm
{a = 7}
>>> p sm + 3
10
>>> p ptr->x
4
>>> p *ptr
Could not find operator*.
>>> p ptr.p->y
6
>>> p (*ptr).x
Could not find operator*.
>>> p mx
{i = 2, d = 0.25}
>>> p take(mx)
2.25
>>> p give(3)
{x = 3, y = 1}
>>> p give(3).x
3
>>> p mixed(2)
{i = 2, d = 0.5}
>>> p mixed(2).d
0.5
>>> p greet(str)
"hello world"
>>> p big(4)
{a = {4, 5, 0, 0, 0}}
>>> p big(4).a[1]
5
>>> p take_big(bg)
3
>>> p over(1)
1
>>> p over(2.0)
2
>>> p over("x")
3
>>> p over(text)
3
>>> p over(1, 2)
4
>>> p over(ul)
5
>>> p over(3ul)
5
>>> p over(&plain)
6
>>> p over(sp)
6
>>> p over(sqp)
6
>>> p over(plain)
7
>>> p over(sq)
7
>>> p over('c')
8
>>> p over(ch)
8
>>> p over(fl)
9
>>> p largest<int>(1, 2)
2
>>> p largest<double>(1, 2)
2
>>> p bi
{value = 7}
>>> p bd
{value = 2.5}
>>> p bs
{value = "boxed"}
>>> p fx
{data = {1, 2, 3}}
>>> p bi.value
7
>>> p bi.get()
7
>>> p bd.get()
2.5
>>> p bs.get()
"boxed"
>>> p fx.size()
3
>>> p fx[1]
(int &) @ADDRESS: 2
>>> p fx.data
{1, 2, 3}
>>> p Box<int>::made
There is no field named made
>>> p bi.made
There is no member or method named made.
>>> p sizeof(Box<int>)
4
>>> p sizeof(Box<double>)
8
>>> p (Box<int> *)&bi
(Box<int> *) ADDRESS
>>> p *(Box<int> *)&bi
{value = 7}
>>> p ((Box<int> *)&bi)->value
7
>>> p sizeof(Fixed<int, 3>)
12
>>> p sizeof(Fixed<int,3>)
12
>>> p sizeof(geo::Square)
32
>>> p sizeof(Square)
32
>>> p lambda
{__captured = 11, __by_ref = @ADDRESS}
>>> p lambda.__captured
11
>>> p pm
&geo::Square::side
>>> p sq.*pm
4
>>> p sqp->*pm
4
>>> p pmf
(int (geo::Square::*)(const geo::Square * const)) ADDRESS <geo::Square::self() const>
>>> p pmv
&virtual geo::Shape::area() const
>>> p (sq.*pmf)()
14
>>> p (sqp->*pmf)()
14
>>> p &geo::Square::side
&geo::Square::side
>>> p &geo::Shape::id
&geo::Shape::id
>>> p fp
(int (*)(int)) ADDRESS <geo::free_function(int)>
>>> p fp(3)
4
>>> p *fp
{int (int)} ADDRESS <geo::free_function(int)>
>>> p ref
(int &) @ADDRESS: 11
>>> p &ref
(int *) ADDRESS
>>> p rref
(int &&) @ADDRESS: 6
>>> p cptr
(int * const) ADDRESS
>>> p *cptr
11
>>> p str
"world"
>>> p str.size()
5
>>> p shapes
std::vector of length 2, capacity 2 = {ADDRESS, ADDRESS}
>>> p shapes[0]
(geo::Shape *) ADDRESS
>>> p us
std::unique_ptr<geo::Shape> = {get() = ADDRESS}
>>> p *us
{_vptr.Shape = ADDRESS <vtable for geo::Square+16>, id = 10, static count = 4, static limit = 9, kind = geo::Shape::large}
>>> p us->area()
36
>>> p us->id
10
>>> p ss
std::shared_ptr<geo::Shape> (use count 1, weak count 0) = {get() = ADDRESS}
>>> p *ss
{_vptr.Shape = ADDRESS <vtable for geo::Square+16>, id = 10, static count = 4, static limit = 9, kind = geo::Shape::large}
>>> p ss->area()
49
>>> p either
{i = 1, f = 1.40129846e-45}
>>> p either.f
1.40129846e-45
>>> p dynamic_cast<geo::Square *>(sp)
(geo::Square *) ADDRESS
>>> p dynamic_cast<Square *>(sp)
(geo::Square *) ADDRESS
>>> p dynamic_cast<Square *>(cp)
(geo::Square *) ADDRESS
>>> p dynamic_cast<Square *>(&plain)
(geo::Square *) ADDRESS
>>> p dynamic_cast<Colored *>(sp)
(geo::Colored *) ADDRESS
>>> p dynamic_cast<Shape *>(sqp)
(geo::Shape *) ADDRESS
>>> p static_cast<Square *>(sp)
(geo::Square *) ADDRESS
>>> p static_cast<Square *>(cp)
(geo::Square *) ADDRESS
>>> p static_cast<int>(2.5)
2
>>> p static_cast<Shape *>(sqp)
(geo::Shape *) ADDRESS
>>> p static_cast<Colored *>(sqp)
(geo::Colored *) ADDRESS
>>> p reinterpret_cast<long *>(sp)
(long *) ADDRESS
>>> p reinterpret_cast<unsigned long>(sp) == (unsigned long)sp
true
>>> p const_cast<Shape *>(sp)
(geo::Shape *) ADDRESS
>>> p (Square *)sp
(geo::Square *) ADDRESS
>>> p (Colored *)sqp
(geo::Colored *) ADDRESS
>>> p (Square *)cp
(geo::Square *) ADDRESS
>>> p sqp == sp
true
>>> p sp == cp
false
>>> p sizeof(sq)
32
>>> p sizeof(*sp)
16
>>> p sizeof sq
32
>>> p sizeof(int)
4
>>> p alignof(long)
8
>>> p this
No symbol "this" in current context.
>>> p yes ? a : b
{x = 4, y = 6}
>>> p true
true
>>> p false
false
>>> p yes == true
true
>>> p !yes
false
>>> p yes && false
false
>>> p a.x + b.y
8
>>> p &sq
(geo::Square *) ADDRESS
>>> p &sq.side
(int *) ADDRESS
>>> p &sr
(geo::Shape *) ADDRESS
>>> p sp != 0
true
>>> p arr2
{{1, 2, 3}, {4, 5, 6}}
>>> p arr2[1]
{4, 5, 6}
>>> p *arr2
{1, 2, 3}
>>> p &arr2
(int (*)[2][3]) ADDRESS
>>> p argc
1
>>> p 'Shape::count'
4
>>> p 'geo::Shape::count'
4
>>> p &free_function
(int (*)(int)) ADDRESS <geo::free_function(int)>
>>> p free_function
{int (int)} ADDRESS <geo::free_function(int)>
>>> p *free_function
{int (int)} ADDRESS <geo::free_function(int)>
>>> p geo::free_function
{int (int)} ADDRESS <geo::free_function(int)>
>>> p &geo::Shape::total
(int (*)(int)) ADDRESS <geo::Shape::total(int)>
>>> p geo::Shape::total
{int (int)} ADDRESS <geo::Shape::total(int)>
>>> p sq.area
{int (const geo::Square * const)} ADDRESS <geo::Square::area() const>
>>> p sq.total
{int (int)} ADDRESS <geo::Shape::total(int)>
>>> p sq.nosuch
There is no member or method named nosuch.
>>> p sq.nosuch()
Couldn't find method geo::Square::nosuch
>>> p sp->nosuch
There is no member or method named nosuch.
>>> p nosuch
No symbol "nosuch" in current context.
>>> p over
{int (float)} ADDRESS <over(float)>
>>> p geo::Shape::nosuch
There is no field named nosuch
>>> p over()
Too few arguments in function call.
>>> p over(a)
Cannot resolve function over to any overloaded instance
>>> p sq.scaled()
Too few arguments in function call.
>>> p sq.scaled(1,2,3)
Cannot resolve method geo::Square::scaled to any overloaded instance
>>> p take(1)
Cannot resolve function take to any overloaded instance
>>> p Counter::shared_count
8
>>> p ctr
{n = 5, static shared_count = 8}
>>> p uc
200 '\310'
>>> p (char)uc
-56 '\310'
>>> p ch
99 'c'
>>> p fl
1.5
>>> p num
9
>>> p ul
3
>>> p vp
(void *) ADDRESS
>>> p bg
{a = {1, 2, 3, 4, 5}}
>>> p bg.a[1]@2
{2, 3}
>>> p text
ADDRESS "text"
>>> p *text@4
"text"
>>> p text[0]
116 't'
>>> p $_strlen(text)
4
>>> p 1 == 1
true
>>> p 1.5 + 2
3.5
>>> p 10 / 3.0
3.3333333333333335
>>> p 7 % 3
1
>>> p 1 << 4
16
>>> p ~0
-1
>>> p -1 > 0u
true
>>> p 'a' + 1
98
>>> p sizeof('a')
1
>>> p "abc"
"abc"
>>> p sizeof("abc")
4
>>> p 1 ? 2 : 3
2
>>> p 1,2
2
>>> whatis sq
type = geo::Square
>>> whatis lambda
type = struct {...}
>>> whatis pmf
type = int (geo::Square::*)(const geo::Square * const)
>>> whatis a + b
type = Vec
>>> whatis sq.area()
type = int
>>> whatis sq.area
type = int (const geo::Square * const)
>>> ptype sp
type = struct geo::Shape {
  public:
    int id;
    static int count;
    static const int limit;
    geo::Shape::Kind kind;

    Shape(int);
    static int total(int);
    ~Shape(void);
    virtual int area(void) const;
    virtual const char * name(void) const;
    int scaled(int, int) const;
    int hidden(void);
} *
>>> ptype lambda
type = struct {
    int __captured;
    int &__by_ref;
}
>>> ptype pl
type = enum geo::Plain : unsigned int {geo::one = 1, geo::two}
>>> ptype bi
type = struct Box<int> [with T = int] {
    T value;
  public:
    T get(void) const;
    T plus<int>(T) const;
}
>>> ptype fx
type = struct Fixed<int, 3> [with T = int] {
    T data[3];
  public:
    T size(void) const;
    T & operator[](T);
}
>>> info vtbl sq
vtable for 'geo::Square' @ ADDRESS (subobject @ ADDRESS):
[0]: ADDRESS <geo::Square::~Square()>
[1]: ADDRESS <geo::Square::~Square()>
[2]: ADDRESS <geo::Square::area() const>
[3]: ADDRESS <geo::Square::name() const>

vtable for 'geo::Colored' @ ADDRESS (subobject @ ADDRESS):
[0]: ADDRESS <geo::Colored::tint() const>
>>> info vtbl sp
vtable for 'geo::Shape' @ ADDRESS (subobject @ ADDRESS):
[0]: ADDRESS <geo::Square::~Square()>
[1]: ADDRESS <geo::Square::~Square()>
[2]: ADDRESS <geo::Square::area() const>
[3]: ADDRESS <geo::Square::name() const>
>>> info vtbl sr
vtable for 'geo::Shape' @ ADDRESS (subobject @ ADDRESS):
[0]: ADDRESS <geo::Square::~Square()>
[1]: ADDRESS <geo::Square::~Square()>
[2]: ADDRESS <geo::Square::area() const>
[3]: ADDRESS <geo::Square::name() const>
>>> info vtbl vb
>>> info vtbl a
This object does not have a virtual function table
>>> info vtbl plain
vtable for 'geo::Shape' @ ADDRESS (subobject @ ADDRESS):
[0]: ADDRESS <geo::Shape::~Shape()>
[1]: ADDRESS <geo::Shape::~Shape()>
[2]: ADDRESS <geo::Shape::area() const>
[3]: ADDRESS <geo::Shape::name() const>
>>> info vtbl num
This object does not have a virtual function table
>>> show print object
Printing of object's derived type based on vtable info is off.
>>> show print vtbl
Printing of C++ virtual function tables is off.
>>> set print object on
>>> p vlp
(VBoth *) ADDRESS
>>> p vbp
(VBoth *) ADDRESS
>>> whatis sp
type = /* real type = geo::Square * */
geo::Shape *
>>> whatis *sp
type = geo::Shape
>>> whatis sr
type = /* real type = geo::Square & */
geo::Shape &
>>> set print object off
>>> set print vtbl on
>>> p -pretty -- sq
{
  <geo::Shape> = {
    _vptr.Shape = ADDRESS <vtable for geo::Square+16>,
    id = 10,
    static count = 4,
    static limit = 9,
    kind = geo::Shape::large
  }, 
  <geo::Colored> = {
    _vptr.Colored = ADDRESS <vtable for geo::Square+64>,
    color = geo::Color::blue
  }, 
  members of geo::Square:
  side = 4
}
>>> set print vtbl off
>>> p -object -- *sp
(geo::Square) {<geo::Shape> = {_vptr.Shape = ADDRESS <vtable for geo::Square+16>, id = 10, static count = 4, static limit = 9, kind = geo::Shape::large}, <geo::Colored> = {_vptr.Colored = ADDRESS <vtable for geo::Square+64>, color = geo::Color::blue}, side = 4}
>>> p/x sq
{<geo::Shape> = {_vptr.Shape = ADDRESS <vtable for geo::Square+16>, id = ADDRESS, static count = ADDRESS, static limit = ADDRESS, kind = ADDRESS}, <geo::Colored> = {_vptr.Colored = ADDRESS <vtable for geo::Square+64>, color = ADDRESS}, side = ADDRESS}
>>> p/d color
5
>>> p/x color
ADDRESS
>>> ptype pm
type = int geo::Square::*
>>> ptype re_syntax_options
type = union re_syntax_options {
    int i;
    char c[3];
}
>>> p sizeof(re_syntax_options)
4
>>> p typeid(sq)
{_vptr.type_info = ADDRESS <vtable for __cxxabiv1::__vmi_class_type_info+16>, __name = ADDRESS <typeinfo name for geo::Square> "N3geo6SquareE"}
>>> p typeid(*sp)
{_vptr.type_info = ADDRESS <vtable for __cxxabiv1::__vmi_class_type_info+16>, __name = ADDRESS <typeinfo name for geo::Square> "N3geo6SquareE"}
>>> p typeid(sp)
could not find typeinfo symbol for 'geo::Shape*'
>>> p typeid(geo::Square)
{_vptr.type_info = ADDRESS <vtable for __cxxabiv1::__vmi_class_type_info+16>, __name = ADDRESS <typeinfo name for geo::Square> "N3geo6SquareE"}
>>> p typeid(plain)
{_vptr.type_info = ADDRESS <vtable for __cxxabiv1::__class_type_info+16>, __name = ADDRESS <typeinfo name for geo::Shape> "N3geo5ShapeE"}
>>> p typeid(int)
{_vptr.type_info = ADDRESS <vtable for __cxxabiv1::__fundamental_type_info+16>, __name = ADDRESS <typeinfo name for int> "i"}
>>> p typeid(1 + 1)
{_vptr.type_info = ADDRESS <vtable for __cxxabiv1::__fundamental_type_info+16>, __name = ADDRESS <typeinfo name for int> "i"}
>>> p typeid(a)
could not find typeinfo symbol for 'Vec'
>>> p typeid(sq).__name
ADDRESS <typeinfo name for geo::Square> "N3geo6SquareE"
>>> whatis typeid(sq)
type = gdb_gnu_v3_type_info
>>> ptype typeid(sq)
type = struct gdb_gnu_v3_type_info {
    void *_vptr.type_info;
    const char *__name;
}
>>> p &typeid(sq)
(gdb_gnu_v3_type_info *) ADDRESS <typeinfo for geo::Square>
>>> whatis __decltype(ref)
type = int &
>>> whatis __decltype(rref)
type = int &&
>>> whatis __decltype(*sp)
type = geo::Shape &
>>> whatis __decltype(captured + 1)
type = int
>>> whatis __decltype(arr2)
type = int [2][3]
>>> whatis __decltype(arr2[0])
type = int (&)[3]
>>> whatis __typeof__(*sp)
type = geo::Shape
>>> whatis typeof(num)
type = long
>>> p _Alignof(double)
8
>>> p alignof(Square)
8
>>> p &Colored::tint
&virtual geo::Colored::tint() const
>>> p &geo::Square::self
(int (geo::Square::*)(const geo::Square * const)) ADDRESS <geo::Square::self() const>
>>> p &Shape::scaled
(int (geo::Shape::*)(const geo::Shape * const, int, int)) ADDRESS <geo::Shape::scaled(int, int) const>
>>> whatis &Shape::area
type = int (geo::Shape::*)(const geo::Shape * const)
>>> p (sq.*(&Square::self))()
14
>>> whatis lambda
type = struct {...}
>>> p greet(str).c_str()
ADDRESS "hello world"
>>> whatis str.c_str()
type = const char *
>>> p str.c_str()
ADDRESS "world"
