// A program of Rust as people debug them: strings, a vector, a map.
use std::collections::HashMap;

struct Item {
    name: String,
    count: i32,
}

#[inline(never)]
fn put(stock: &mut HashMap<String, i32>, item: &Item) {
    *stock.entry(item.name.clone()).or_insert(0) += item.count;
}

fn main() {
    let mut stock = HashMap::new();
    for name in ["apple", "pear"] {
        put(&mut stock, &Item { name: name.to_string(), count: 3 });
    }
    println!("{:?}", stock.get("pear"));
}
