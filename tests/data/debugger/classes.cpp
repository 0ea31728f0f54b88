struct Base {
    Base();
    virtual ~Base();
    virtual int kind() const = 0;
    int id;
};

class Animal : public Base {
public:
    typedef long weight_t;
    enum Mood { CALM, WILD };
    struct Tag {
        int number;
        int twice() const { return number * 2; }
    };
    Animal(int legs, const char *name);
    Animal(const Animal &other);
    Animal &operator=(const Animal &other);
    ~Animal() override;
    int kind() const override;
    static int count();
    weight_t weigh(double factor, unsigned char times);
    bool operator==(const Animal &other) const;
    operator int() const;
    int volatile_one() volatile;
    template <typename T> T as(T from) { return from + legs_; }

protected:
    virtual void speak(const Tag &tag, Mood mood);
    int legs_;

private:
    const char *name_;
    Tag tag_;
    weight_t weight_;
    Mood mood_;
    static int made_;
    void hide();
};

template <typename T> class Box {
    T item_;

public:
    using value_type = T;
    explicit Box(T item) : item_(item) {}
    T get() const { return item_; }
    void put(T item) { item_ = item; }
};

union Mixed {
    int whole;
    float part;
    Mixed() : whole(0) {}
    float half() const { return part / 2; }
};

struct Plain {
    int a;
    int b;
};

struct Mostly {
    int first;
    int sum(int more) { return first + more; }

private:
    int second;
};

class Closed {
    int a;
    int b;
};

class Open {
public:
    int a;
    int f() { return a; }
};

Base::Base() : id(1) {}
Base::~Base() {}
int Animal::made_;
Animal::Animal(int legs, const char *name) : legs_(legs), name_(name), tag_(), weight_(0), mood_(CALM) { made_++; }
Animal::Animal(const Animal &other) : Base(other), legs_(other.legs_), name_(other.name_), tag_(), weight_(0), mood_(WILD) {}
Animal &Animal::operator=(const Animal &other)
{
    legs_ = other.legs_;
    return *this;
}
Animal::~Animal() {}
int Animal::kind() const { return 2; }
int Animal::count() { return made_; }
Animal::weight_t Animal::weigh(double factor, unsigned char times) { return (weight_t)(factor * times) + weight_; }
bool Animal::operator==(const Animal &other) const { return legs_ == other.legs_; }
Animal::operator int() const { return legs_; }
int Animal::volatile_one() volatile { return legs_; }
void Animal::speak(const Tag &tag, Mood mood) { mood_ = mood; tag_ = tag; hide(); }
void Animal::hide() { name_ = ""; }

Plain plain;
Mostly mostly;
Closed closed;
Open open_one;
Mixed mixed;

int main()
{
    Animal cat(4, "cat"), other(cat);
    Box<int> box(3);
    other = cat;
    box.put(cat.kind());
    Animal::Tag tag = {3};
    return cat.as(box.get()) + (int)cat + (cat == other) + Animal::count() + (int)cat.weigh(1, 2) + cat.volatile_one() + mostly.sum(1) + open_one.f() + (int)mixed.half() + tag.twice();
}
