#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

namespace post {

class Parcel {
  public:
    explicit Parcel(int grams, int zone = 1) : grams_(grams), zone_(zone) {}
    virtual ~Parcel() = default;
    virtual int price() const
    {
        int base = 100;
        return base + grams_ / 10 * zone_;
    }
    int grams() const { return grams_; }
    void repack(int more)
    {
        grams_ += more;
        if (grams_ > 5000)
            throw std::runtime_error("too heavy");
    }
    bool operator<(const Parcel &other) const
    {
        return grams_ < other.grams_;
    }

  protected:
    int grams_;
    int zone_;
};

class Express : public Parcel {
  public:
    Express(int grams, int hours) : Parcel(grams, 2), hours_(hours) {}
    int price() const override
    {
        int slow = Parcel::price();
        return slow + 1000 / hours_;
    }

  private:
    int hours_;
};

static int counted = 0;

int weight(int n)
{
    counted++;
    return n * 3;
}

double weight(double v)
{
    double w = v * 1.5;
    return w;
}

int nested(int depth)
{
    if (depth == 0)
        return weight(1);
    int inner = nested(depth - 1);
    return inner + depth;
}

template <typename T> T larger(T a, T b)
{
    T best = a < b ? b : a;
    return best;
}

std::string label(const Parcel &p)
{
    std::string text = "parcel of ";
    text += std::to_string(p.grams());
    return text;
}

int total(const std::vector<Parcel *> &all)
{
    int sum = 0;
    for (const Parcel *p : all)
        sum += p->price();
    return sum;
}

int crash(int *where)
{
    *where = 1;
    return 2;
}

} // namespace post

using post::Parcel;

int check(Parcel &first, int zone)
{
    int local = post::nested(2) + zone;
    first.repack(100);
    return local;
}

int main()
{
    Parcel small(200);
    post::Express fast(900, 4);
    std::vector<Parcel *> all{&small, &fast};
    int sum = post::total(all);
    int found = check(small, 3);
    std::cout << post::label(small) << ", " << sum << ", " << found << ", "
              << post::larger(2, 5) << ", " << post::weight(2.0) << std::endl;
    return 0;
}
