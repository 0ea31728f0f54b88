// Types with holes, bitfields, unions and members of all kinds, for `ptype/o`.

#include <string>
#include <vector>

struct Empty {};

struct V {
    virtual int f();
    int a;
};

struct W : V, Empty {
    char c;
};

class Priv {
    int a;

public:
    char b;

protected:
    short s;
    static int q;
    typedef int T;
    T t;
};

struct Nest {
    struct Inner {
        int x;
        char y;
        struct {
            char z;
            int w;
        } in;
    } one;
    char gap;
    Inner two[2];
    Inner *ptr;
    int &ref;
    int (*fn)(int);
    int m[2][3];
    enum E { A, B } e;
    enum class F : char { P } f;
    double d;
};

struct Bits {
    int a : 3;
    int : 5;
    int b : 9;
    int c : 17;
    char d : 2;
    long e : 60;
    bool g;
    unsigned h : 1;
};

union U {
    int a;
    struct {
        char b;
        char c;
        short d;
    } s;
    union {
        int z;
        long y;
    } n;
    double q[2];
};

struct Last {
    long a;
    union {
        char b[3];
        short c;
    };
    struct {
        int p, q;
    };
    char t;
};

struct Flex {
    int n;
    char data[];
};

template <class T> struct Tp {
    T a;
    char b;
    int f(T x) { return static_cast<int>(x); }
};

struct Hole {
    char a;
    long b;
    char c;
};

struct UseHole {
    int z;
    Hole h;
    char q;
    Hole hs[2];
    Empty e;
    std::string s;
};

int V::f() { return a; }
int Priv::q;
int number;
W w;
Priv pr;
Bits bits;
U u;
Last last;
Flex flex;
Tp<char> tp;
Hole hole;
Empty em;
UseHole uh;
Nest nest{{}, 0, {}, nullptr, number, nullptr, {}, Nest::A, Nest::F::P, 0};

int main() { return w.f() + bits.a + tp.f(1); }
