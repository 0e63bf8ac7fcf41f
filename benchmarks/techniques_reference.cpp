// The reference loops: what benchmarks/techniques.py's compiled techniques are measured against.
// Built on the spot: g++ -O3 -shared -fPIC. Same rings, same order of work as the Python templates.
#include <cstdint>
#include <vector>

extern "C" {

// Exact integer sum: evict by subtraction, push by addition, answer.
void sum_of_integers(const int64_t* values, int64_t count, int64_t size, int64_t* out) {
    int64_t slots = 1;
    while (slots < size) slots *= 2;
    const int64_t mask = slots - 1;
    std::vector<int64_t> ring(slots);
    uint64_t total = 0;
    int64_t oldest = 0;
    for (int64_t next = 0; next < count; ++next) {
        if (next - oldest == size) total -= static_cast<uint64_t>(ring[oldest++ & mask]);
        ring[next & mask] = values[next];
        total += static_cast<uint64_t>(values[next]);
        out[next] = static_cast<int64_t>(total);
    }
}

// SlickDeque (Non-Inv) for max: a monotonic deque of values and their positions.
void max_by_deque(const int64_t* values, int64_t count, int64_t size, int64_t* out) {
    int64_t slots = 1;
    while (slots < size) slots *= 2;
    const int64_t mask = slots - 1;
    std::vector<int64_t> kept(slots), positions(slots);
    int64_t head = 0, tail = 0;
    for (int64_t next = 0; next < count; ++next) {
        if (head < tail && positions[head & mask] == next - size) ++head;
        while (tail > head && kept[(tail - 1) & mask] <= values[next]) --tail;
        kept[tail & mask] = values[next];
        positions[tail & mask] = next;
        ++tail;
        out[next] = kept[head & mask];
    }
}
}
