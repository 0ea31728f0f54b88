use std::collections::HashMap;
use std::fmt;
use std::rc::Rc;

#[derive(Debug, Clone, PartialEq)]
enum Order {
    Cancel,
    Limit { id: u32, price: f64, amount: i64 },
    Market(u32, i64),
    Note(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Side {
    Buy = 1,
    Sell = -1,
}

trait Priced {
    fn price(&self) -> f64;
    fn describe(&self) -> String {
        format!("worth {:.2}", self.price())
    }
}

struct Share {
    name: String,
    value: f64,
    history: Vec<f64>,
}

struct Bond {
    years: u8,
    face: u64,
}

impl Priced for Share {
    fn price(&self) -> f64 {
        self.value
    }
}

impl Priced for Bond {
    fn price(&self) -> f64 {
        self.face as f64 * 0.9
    }
}

struct Node {
    value: i32,
    next: Option<Box<Node>>,
}

struct Book {
    orders: Vec<Order>,
    totals: HashMap<String, i64>,
    side: Side,
    owner: Rc<String>,
    best: Option<f64>,
}

impl Book {
    fn new(owner: Rc<String>) -> Book {
        Book { orders: Vec::new(), totals: HashMap::new(), side: Side::Buy, owner, best: None }
    }

    fn add(&mut self, order: Order) -> usize {
        let key = match &order {
            Order::Cancel => "cancel",
            Order::Limit { price, .. } => {
                self.best = Some(*price);
                "limit"
            }
            Order::Market(_, _) => "market",
            Order::Note(_) => "note",
        };
        *self.totals.entry(key.to_string()).or_insert(0) += 1;
        self.orders.push(order);
        self.orders.len()
    }
}

impl fmt::Display for Book {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{} has {}", self.owner, self.orders.len())
    }
}

fn worth(items: &[Box<dyn Priced>]) -> f64 {
    let mut sum = 0.0;
    for item in items {
        sum += item.price();
    }
    sum
}

fn length(list: &Option<Box<Node>>) -> usize {
    match list {
        None => 0,
        Some(node) => 1 + length(&node.next),
    }
}

static LIMIT: i64 = 1_000;
const FEES: [f32; 3] = [0.5, 0.25, 0.125];

fn checked(amount: i64) -> Result<i64, String> {
    if amount > LIMIT {
        return Err(format!("{} is too much", amount));
    }
    Ok(amount * 2)
}

fn main() {
    let owner = Rc::new(String::from("ada"));
    let mut book = Book::new(Rc::clone(&owner));
    book.add(Order::Limit { id: 1, price: 9.5, amount: 30 });
    book.add(Order::Market(2, -5));
    book.add(Order::Note("soon".to_string()));
    let count = book.add(Order::Cancel);
    let items: Vec<Box<dyn Priced>> = vec![
        Box::new(Share { name: "acme".to_string(), value: 12.25, history: vec![1.0, 2.0] }),
        Box::new(Bond { years: 10, face: 1000 }),
    ];
    let total = worth(&items);
    let list = Some(Box::new(Node { value: 1, next: Some(Box::new(Node { value: 2, next: None })) }));
    let depth = length(&list);
    let good = checked(21);
    let bad = checked(5_000);
    let factor = 3;
    let scale = move |x: i64| x * factor + depth as i64;
    let tuple = (count, 'x', true, "text", scale(4));
    let fees = FEES;
    let slice = &fees[1..];
    println!("{} {} {:?} {:?} {:?} {:?}", book, total, good, bad, tuple, slice);
}
