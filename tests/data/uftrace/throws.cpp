#include <stdexcept>
#include <vector>
#include <string>
#define N __attribute__((noinline))
volatile long sink;
struct Noise { N Noise(){ sink++; } N ~Noise(){ sink--; } };
N void leaf(int n){ sink+=n; if(n>3) throw std::runtime_error("big"); }
N void mid(int n){ Noise a; leaf(n); leaf(n+1); }
N int guard(int n){ try { mid(n); } catch(std::exception const&e){ leaf(1); return 1; } return 0; }
N void rethrow(int n){ try { mid(n); } catch(...) { leaf(2); throw; } }
template<class T> N T twice(T v){ leaf(0); return v+v; }
int main(){ int r=0; for(int i=0;i<6;i++) r+=guard(i); for(int i=2;i<5;i++) try { rethrow(i); } catch(std::runtime_error const&) { leaf(3); } twice(3); twice(std::string("a")); return r==4?0:1; }
