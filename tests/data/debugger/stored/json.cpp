#include <cctype>
#include <cstdio>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace json {

struct Null {};
class Value;
using Array = std::vector<Value>;
using Object = std::map<std::string, Value>;

enum class Kind : unsigned char { null, boolean, number, text, array, object };

class Value {
public:
    Value() = default;
    explicit Value(bool flag) : data_(flag) {}
    explicit Value(double number) : data_(number) {}
    explicit Value(std::string text) : data_(std::move(text)) {}
    explicit Value(Array items) : data_(std::make_shared<Array>(std::move(items))) {}
    explicit Value(Object fields) : data_(std::make_shared<Object>(std::move(fields))) {}
    Kind kind() const { return static_cast<Kind>(data_.index()); }
    double number() const { return std::get<double>(data_); }
    const std::string &text() const { return std::get<std::string>(data_); }
    const Array &array() const { return *std::get<std::shared_ptr<Array>>(data_); }
    const Object &object() const { return *std::get<std::shared_ptr<Object>>(data_); }

private:
    std::variant<Null, bool, double, std::string, std::shared_ptr<Array>, std::shared_ptr<Object>> data_;
};

class Error : public std::runtime_error {
public:
    Error(const std::string &what, std::size_t where) : std::runtime_error(what), where_(where) {}
    std::size_t where() const { return where_; }

private:
    std::size_t where_;
};

struct Limits {
    unsigned depth : 6;
    unsigned strict : 1;
    signed slack : 5;
};

class Parser {
public:
    explicit Parser(std::string text) : text_(std::move(text)) { ++made; }
    Value parse()
    {
        Value value = item(0);
        skip();
        if (at_ != text_.size())
            throw Error("trailing text", at_);
        return value;
    }
    static int made;

private:
    void skip()
    {
        while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])))
            ++at_;
    }
    char peek()
    {
        skip();
        if (at_ >= text_.size())
            throw Error("end of text", at_);
        return text_[at_];
    }
    Value item(int depth)
    {
        if (depth > limits_.depth)
            throw Error("too deep", at_);
        char next = peek();
        switch (next) {
        case '{':
            return object(depth + 1);
        case '[':
            return array(depth + 1);
        case '"':
            return Value(word());
        case 't':
            at_ += 4;
            return Value(true);
        case 'f':
            at_ += 5;
            return Value(false);
        case 'n':
            at_ += 4;
            return Value();
        default:
            return number();
        }
    }
    Value number()
    {
        std::size_t used = 0;
        double value = std::stod(text_.substr(at_), &used);
        at_ += used;
        return Value(value);
    }
    std::string word()
    {
        std::size_t end = text_.find('"', at_ + 1);
        if (end == std::string::npos)
            throw Error("open string", at_);
        std::string found = text_.substr(at_ + 1, end - at_ - 1);
        at_ = end + 1;
        return found;
    }
    Value array(int depth)
    {
        Array items;
        ++at_;
        while (peek() != ']') {
            items.push_back(item(depth));
            if (peek() == ',')
                ++at_;
        }
        ++at_;
        return Value(std::move(items));
    }
    Value object(int depth)
    {
        Object fields;
        ++at_;
        while (peek() != '}') {
            std::string key = word();
            if (peek() != ':')
                throw Error("no colon", at_);
            ++at_;
            fields[key] = item(depth);
            if (peek() == ',')
                ++at_;
        }
        ++at_;
        return Value(std::move(fields));
    }
    std::string text_;
    std::size_t at_ = 0;
    Limits limits_ = {4, 1, -3};
};

int Parser::made = 0;

double sum(const Value &value)
{
    double total = 0;
    if (value.kind() == Kind::number)
        return value.number();
    if (value.kind() == Kind::array)
        for (const Value &each : value.array())
            total += sum(each);
    if (value.kind() == Kind::object)
        for (const auto &[key, each] : value.object())
            total += sum(each);
    return total;
}

} // namespace json

static const char *const samples[] = {
    "{\"name\": \"pump\", \"sizes\": [1, 2.5, 4], \"on\": true, \"none\": null}",
    "[1, [2, [3, [4, [5]]]]]",
    "{\"open\" 3}",
};

int main()
{
    int failures = 0;
    double totals[3] = {};
    for (int i = 0; i < 3; ++i) {
        try {
            json::Parser parser(samples[i]);
            json::Value root = parser.parse();
            totals[i] = json::sum(root);
            std::printf("%d: %.2f\n", i, totals[i]);
        } catch (const json::Error &error) {
            ++failures;
            std::printf("%d: %s at %zu\n", i, error.what(), error.where());
        }
    }
    return failures;
}
