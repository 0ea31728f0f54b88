#include <wchar.h>
#include <uchar.h>
wchar_t w[] = L"wide"; char16_t u[8] = u"u16"; char32_t U[] = U"u32"; const wchar_t *pw = L"ptr"; wchar_t rows[2][4] = {L"ab", L"cd"}; char c8[] = "plain"; wchar_t ch = L'x'; wchar_t big[300] = L"begin"; wchar_t odd[] = L"\u00e9\u4e2d\n"; struct { wchar_t name[6]; int n; } s = { L"in", 3 };
int main(void) { return w[0] + u[0] + U[0] + *pw; }
