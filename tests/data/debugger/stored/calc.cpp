#include <cmath>
#include <cstring>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

class DivideByZero : public std::domain_error {
public:
    explicit DivideByZero(int column) : std::domain_error("division by zero"), column(column) {}
    int column;
};

struct Scope {
    std::map<std::string, double> names;
    Scope *outer = nullptr;
    double find(const std::string &name) const
    {
        auto at = names.find(name);
        if (at != names.end())
            return at->second;
        if (outer)
            return outer->find(name);
        throw std::out_of_range("no name " + name);
    }
};

class Node {
public:
    virtual ~Node() = default;
    virtual double value(const Scope &scope) const = 0;
    virtual int size() const { return 1; }
    virtual const char *kind() const = 0;
    static unsigned long made;

protected:
    Node() { ++made; }
    int column_ = 0;
};
unsigned long Node::made = 0;

using NodePtr = std::unique_ptr<Node>;

class Constant final : public Node {
public:
    explicit Constant(double held) : held_(held) {}
    double value(const Scope &) const override { return held_; }
    const char *kind() const override { return "constant"; }

private:
    double held_;
};

class Name final : public Node {
public:
    explicit Name(std::string name) : name_(std::move(name)) {}
    double value(const Scope &scope) const override { return scope.find(name_); }
    const char *kind() const override { return "name"; }

private:
    std::string name_;
};

class Binary : public Node {
public:
    enum Op { Plus = '+', Minus = '-', Times = '*', Over = '/' };
    Binary(Op op, NodePtr left, NodePtr right, int column)
        : op_(op), left_(std::move(left)), right_(std::move(right))
    {
        column_ = column;
    }
    double value(const Scope &scope) const override
    {
        double a = left_->value(scope);
        double b = right_->value(scope);
        switch (op_) {
        case Plus:
            return a + b;
        case Minus:
            return a - b;
        case Times:
            return a * b;
        case Over:
            if (b == 0)
                throw DivideByZero(column_);
            return a / b;
        }
        return NAN;
    }
    int size() const override { return 1 + left_->size() + right_->size(); }
    const char *kind() const override { return "binary"; }

private:
    Op op_;
    NodePtr left_;
    NodePtr right_;
};

class Reader {
public:
    explicit Reader(const std::string &text) : in_(text) {}
    NodePtr sum()
    {
        NodePtr left = product();
        while (in_.peek() == '+' || in_.peek() == '-') {
            int at = int(in_.tellg());
            char op = char(in_.get());
            left = std::make_unique<Binary>(Binary::Op(op), std::move(left), product(), at);
        }
        return left;
    }

private:
    NodePtr product()
    {
        NodePtr left = factor();
        while (in_.peek() == '*' || in_.peek() == '/') {
            int at = int(in_.tellg());
            char op = char(in_.get());
            left = std::make_unique<Binary>(Binary::Op(op), std::move(left), factor(), at);
        }
        return left;
    }
    NodePtr factor()
    {
        if (in_.peek() == '(') {
            in_.get();
            NodePtr inner = sum();
            in_.get();
            return inner;
        }
        if (std::isalpha(in_.peek())) {
            std::string name;
            while (std::isalpha(in_.peek()))
                name += char(in_.get());
            return std::make_unique<Name>(name);
        }
        double held = 0;
        in_ >> held;
        if (in_.eof())
            in_.clear();
        return std::make_unique<Constant>(held);
    }
    std::istringstream in_;
};

static double evaluate(const std::string &text, const Scope &scope)
{
    Reader reader(text);
    NodePtr root = reader.sum();
    double result = root->value(scope);
    return result;
}

int main(int argc, char **argv)
{
    Scope global;
    global.names["x"] = 3;
    global.names["pi"] = 3.140625;
    Scope inner;
    inner.outer = &global;
    inner.names["y"] = -0.5;
    std::vector<std::string> lines = {"1+2*3", "(x+1)*y", "4/(x-3)", "2*zebra"};
    int errors = 0;
    double last = 0;
    for (const std::string &line : lines) {
        try {
            last = evaluate(line, inner);
            std::cout << line << " = " << last << std::endl;
        } catch (const DivideByZero &zero) {
            ++errors;
            std::cout << line << ": " << zero.what() << " at " << zero.column << std::endl;
        } catch (const std::exception &other) {
            errors += 10;
            std::cout << line << ": " << other.what() << std::endl;
        }
    }
    return errors;
}
