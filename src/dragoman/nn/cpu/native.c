/* The loops of decoding and of training for which PyTorch needs several operators, each with a pass
   over memory.

   Compiled by `hatch_build.py` when the package is installed, where there is a C compiler; without
   one PyTorch computes the same. All rows are independent: what a row gives does not depend on how
   many there are, nor on the number of threads. Compile with -ffp-contract=off, so that every rounding
   is one that is written.

   Sizes in comments: N rows, H heads, K key-value heads, d numbers of a head, C positions. */

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#ifdef __AVX512VNNI__
#include <immintrin.h>
#endif

#define ENOUGH 100000 /* numbers below which waking a second thread costs more than it saves */
#define MANY_PRODUCTS 16000000 /* of integers: the same */
#define PART 16384 /* numbers of a long row that a thread takes at a time */

/* The nearest integer to x, the even one of two, in the lowest bits: of 1.5 * 2^23 + x in float32. For
   |x| < 2^22; any other number, NaN too, gives some bits. */
static inline uint32_t nearest(float x) {
    union { float number; uint32_t bits; } sum = {.number = x + 12582912.0f};
    return sum.bits;
}

/* e^x for x <= 0, relative error below 3e-7: 2^n e^r with |r| <= ln(2)/2, e^r by Taylor's series. */
static inline float exponential(float x) {
    x = x < -87.0f ? -87.0f : x;
    float n = rintf(x * 1.44269504f);
    float r = fmaf(n, -1.42860677e-6f, fmaf(n, -0.693145752f, x)); /* ln 2 in two parts */
    float sum = 1.0f / 5040;
    sum = fmaf(sum, r, 1.0f / 720);
    sum = fmaf(sum, r, 1.0f / 120);
    sum = fmaf(sum, r, 1.0f / 24);
    sum = fmaf(sum, r, 1.0f / 6);
    sum = fmaf(sum, r, 0.5f);
    sum = fmaf(sum, r, 1.0f);
    sum = fmaf(sum, r, 1.0f);
    union { uint32_t bits; float number; } power = {.bits = (nearest(n) + 127) << 23};
    return sum * power.number;
}

/* What rows of `columns` numbers are normalised by. */
struct Norm {
    const float *weight, *bias;
    long columns, centred;
    float eps;
};

/* Each row of x, less its mean if `centred`, over the root of the mean of its squares and eps, times
   weight, plus bias. x may be out. */
static void norm_rows(const struct Norm *by, const float *x, float *out, long rows) {
    long columns = by->columns;
    const float *weight = by->weight, *bias = by->bias;
#pragma omp for
    for (long n = 0; n < rows; n++) {
        const float *from = x + n * columns;
        float *to = out + n * columns, mean = 0.0f, square = 0.0f;
        if (by->centred)
#pragma omp simd reduction(+ : mean)
            for (long i = 0; i < columns; i++) mean += from[i];
        mean /= columns;
#pragma omp simd reduction(+ : square)
        for (long i = 0; i < columns; i++) square += (from[i] - mean) * (from[i] - mean);
        float factor = 1.0f / sqrtf(square / columns + by->eps);
#pragma omp simd
        for (long i = 0; i < columns; i++) to[i] = (from[i] - mean) * factor * weight[i];
        if (bias)
#pragma omp simd
            for (long i = 0; i < columns; i++) to[i] += bias[i];
    }
}

/* out = silu(gate) * value, for rows of x that are a gate and, if `gated`, a value: 1 otherwise; each
   has `columns` numbers. */
static inline __attribute__((always_inline)) void
gate_rows(const float *x, float *out, long rows, long columns, const int gated) {
#pragma omp for
    for (long n = 0; n < rows; n++) {
        const float *from = x + (1 + gated) * n * columns, *value = from + columns;
        float *to = out + n * columns;
#pragma omp simd
        for (long i = 0; i < columns; i++) {
            float power = exponential(-fabsf(from[i]));
            float share = (from[i] < 0.0f ? power : 1.0f) / (1.0f + power); /* sigmoid */
            to[i] = from[i] * share * (gated ? value[i] : 1.0f);
        }
    }
}

/* Sixteen numbers that stay in a register; they may lie anywhere in memory. */
#define LANES 16
typedef float lanes __attribute__((vector_size(64), aligned(4)));
typedef int32_t integers __attribute__((vector_size(64), aligned(4)));
typedef int8_t bytes __attribute__((vector_size(64), aligned(4)));

/* sum[o] += sum_j vector[j] * weight[4 o + j], for four numbers of a vector and LANES outputs. */
static inline integers add_products(integers sum, const uint8_t *vector, bytes weight) {
#ifdef __AVX512VNNI__
    int32_t four;
    memcpy(&four, vector, 4);
    return (integers)_mm512_dpbusd_epi32((__m512i)sum, _mm512_set1_epi32(four), (__m512i)weight);
#else
    for (int o = 0; o < LANES; o++)
        for (int j = 0; j < 4; j++) sum[o] += vector[j] * weight[4 * o + j];
    return sum;
#endif
}

#define TILE_ROWS 6
#define TILE_BLOCKS 4 /* of LANES outputs: a tile of 6 by 64 sums fills the registers */
#define TILE_OUTPUTS (TILE_BLOCKS * LANES)

/* A matrix of integers (outputs / TILE_OUTPUTS, inputs / 4, TILE_OUTPUTS, 4), zeros where it ends
   within a tile, and `offset[o] = 128 sum_i w[o][i]`. */
struct Matrix {
    const int8_t *weight;
    const int32_t *offset;
    const float *scale, *bias;
    long inputs, outputs;
};

/* out = [relu](sum * scale[row] * weight_scale[output] + bias) [+ residual] of one tile. */
static inline __attribute__((always_inline)) void
tile(const struct Matrix *matrix, long first, const uint8_t *vectors, const float *scale,
     const float *residual, int relu, float *out, const int rows) {
    integers sum[TILE_ROWS][TILE_BLOCKS] = {{{0}}};
    for (int n = 0; n < rows; n++) /* so that memory comes while the sums are made */
        for (int b = 0; b < TILE_BLOCKS; b++)
            __builtin_prefetch(out + n * matrix->outputs + first + b * LANES, 1);
    const bytes *weight = (const bytes *)(matrix->weight + first * matrix->inputs);
    for (long i = 0; i < matrix->inputs; i += 4, weight += TILE_BLOCKS)
        for (int n = 0; n < rows; n++)
            for (int b = 0; b < TILE_BLOCKS; b++)
                sum[n][b] = add_products(sum[n][b], vectors + n * matrix->inputs + i, weight[b]);
    for (int b = 0; b < TILE_BLOCKS; b++) {
        long o = first + b * LANES, count = matrix->outputs - o;
        if (count <= 0) return;
        for (int n = 0; n < rows; n++) {
            long at = n * matrix->outputs + o;
            const float *add = residual ? residual + at : 0;
            float *to = out + at;
            integers exact = sum[n][b] - *(const integers *)(matrix->offset + o);
            lanes result = __builtin_convertvector(exact, lanes) * scale[n] *
                               *(const lanes *)(matrix->scale + o) + *(const lanes *)(matrix->bias + o);
            lanes other = {0};
            if (relu) result = (lanes)((integers)result & ~(result < other)); /* keeps NaN */
            if (count >= LANES) {
                *(lanes *)to = add ? result + *(const lanes *)add : result;
                continue;
            }
            if (add) memcpy(&other, add, count * sizeof(float));
            result += other;
            memcpy(to, &result, count * sizeof(float));
        }
    }
}

/* x W^T + b in integers: each row of x (N, inputs) is rounded, x = scale * q with |q| <= 127, in the
   memory of `vectors` (N, inputs) and `scale`. Sums of integers are exact, so these are the bits of
   any other way. The vectors are moved by 128, since processors multiply bytes without a sign by
   bytes with one. */
static void multiply(const struct Matrix *matrix, const float *x, uint8_t *vectors, float *scale,
                     const float *residual, int relu, float *out, long rows) {
    long inputs = matrix->inputs, outputs = matrix->outputs;
#pragma omp for
    for (long n = 0; n < rows; n++) {
        const float *from = x + n * inputs;
        uint8_t *to = vectors + n * inputs;
        float largest = 0.0f, broken = 0.0f; /* NaN where a number is NaN or infinite */
#pragma omp simd reduction(max : largest) reduction(+ : broken)
        for (long i = 0; i < inputs; i++) {
            float size = fabsf(from[i]);
            largest = size > largest ? size : largest;
            broken += size * 0.0f;
        }
        float factor = largest > 0.0f ? 127.0f / largest : 0.0f;
        scale[n] = largest / 127.0f + broken;
#pragma omp simd
        for (long i = 0; i < inputs; i++) to[i] = (uint8_t)(nearest(from[i] * factor) + 128);
    }
#pragma omp for
    for (long o = 0; o < outputs; o += TILE_OUTPUTS) {
        for (long n = 0; n < rows; n += TILE_ROWS) {
            const uint8_t *from = vectors + n * inputs;
            const float *add = residual ? residual + n * outputs : 0;
            float *to = out + n * outputs;
            switch (rows - n) {
            case 1: tile(matrix, o, from, scale + n, add, relu, to, 1); break;
            case 2: tile(matrix, o, from, scale + n, add, relu, to, 2); break;
            case 3: tile(matrix, o, from, scale + n, add, relu, to, 3); break;
            case 4: tile(matrix, o, from, scale + n, add, relu, to, 4); break;
            case 5: tile(matrix, o, from, scale + n, add, relu, to, 5); break;
            default: tile(matrix, o, from, scale + n, add, relu, to, TILE_ROWS);
            }
        }
    }
}

/* How rows read keys and values (places, K, C, slots, d), or of sources keys (places, K, d, C) and
   values (places, K, C, d). Row n is of the sentence at `place[n]`. With a table its ancestor at
   position c stands in slot `slot[n * slot_stride + c]`. It reads `lengths[place[n]]` positions, or
   `length` without `lengths`. With the cosines and sines (d / 2) of a position, queries and the keys
   that are written are turned by it, numbers i and i + d / 2 together, or `adjacent` ones. `bias`
   (H, length) is added to the scores. The weights of `num_seen` heads from `first_seen` on are written
   to `seen` (N, num_seen, length), zeros behind those that a row reads. */
struct Store {
    const int32_t *place, *slot, *lengths;
    const float *cosine, *sine, *bias;
    float *seen;
    long slot_stride, length, rows, heads, kv_heads, dim, capacity, slots, adjacent;
    long first_seen, num_seen;
    float cap;
};

/* Each pair (a, b) of a vector becomes (a cos - b sin, b cos + a sin). */
static inline void turn(const struct Store *store, float *vector) {
    long pairs = store->dim / 2, step = store->adjacent ? 2 : 1, other = store->adjacent ? 1 : pairs;
    const float *cosine = store->cosine, *sine = store->sine;
#pragma omp simd
    for (long i = 0; i < pairs; i++) {
        float a = vector[i * step], b = vector[i * step + other];
        vector[i * step] = a * cosine[i] - b * sine[i];
        vector[i * step + other] = b * cosine[i] + a * sine[i];
    }
}

#define QUERIES 4 /* that read the same keys and values together */

/* scores[c] = q k_c, for keys (C, slots, d). */
static inline void scores_of_prefix(const float *query, const float *keys, const int32_t *slot,
                                    long slots, long length, long dim, float *scores) {
    for (long c = 0; c < length; c++) {
        const float *key = keys + (c * slots + (slot ? slot[c] : 0)) * dim;
        float score = 0.0f;
#pragma omp simd reduction(+ : score)
        for (long i = 0; i < dim; i++) score = fmaf(query[i], key[i], score);
        scores[c] = score;
    }
}

/* The same for keys (d, C), C a multiple of LANES, and for several queries, `stride` apart, whose scores
   are `room` apart: neighbouring positions are summed side by side. */
static inline __attribute__((always_inline)) void
scores_of_source(const float *query, long stride, const float *keys, long capacity, long length,
                 long dim, float *scores, long room, const int queries) {
    for (long c = 0; c < length; c += LANES) {
        lanes even[QUERIES] = {{0}}, odd[QUERIES] = {{0}};
        for (long i = 0; i + 1 < dim; i += 2) {
            lanes key = *(const lanes *)(keys + i * capacity + c);
            lanes next = *(const lanes *)(keys + (i + 1) * capacity + c);
            for (int n = 0; n < queries; n++) even[n] += query[n * stride + i] * key;
            for (int n = 0; n < queries; n++) odd[n] += query[n * stride + i + 1] * next;
        }
        for (int n = 0; n < queries; n++) {
            if (dim % 2)
                even[n] += query[n * stride + dim - 1] * *(const lanes *)(keys + (dim - 1) * capacity + c);
            *(lanes *)(scores + n * room + c) = even[n] + odd[n];
        }
    }
}

/* results = sum_c weights[c] v_c / total of several queries, whose weights are `room` apart and whose
   results `width`, for `count` registers of values (C, slots, d). */
static inline __attribute__((always_inline)) void
weighted_sums(const float *weights, long room, const float *total, const float *values,
              const int32_t *slot, long slots, long length, long dim, float *results, long width,
              const int count, const int queries) {
    lanes sum[QUERIES][4] = {{{0}}};
    for (long c = 0; c < length; c++) {
        const float *value = values + (c * slots + (slot ? slot[c] : 0)) * dim;
        for (int n = 0; n < queries; n++)
            for (int j = 0; j < count; j++) sum[n][j] += weights[n * room + c] * ((const lanes *)value)[j];
    }
    for (int n = 0; n < queries; n++)
        for (int j = 0; j < count; j++) ((lanes *)(results + n * width))[j] = sum[n][j] / total[n];
}

/* Scores of head h become e^(score - largest), whose sum is returned. */
static float exponentials(const struct Store *store, float *weights, long length, long h) {
    float largest = -INFINITY, total = 0.0f;
    if (store->cap)
        for (long c = 0; c < length; c++) weights[c] = store->cap * tanhf(weights[c] / store->cap);
    if (store->bias)
        for (long c = 0; c < length; c++) weights[c] += store->bias[h * length + c];
#pragma omp simd reduction(max : largest)
    for (long c = 0; c < length; c++) largest = weights[c] > largest ? weights[c] : largest;
#pragma omp simd reduction(+ : total)
    for (long c = 0; c < length; c++) {
        weights[c] = exponential(weights[c] - largest);
        total += weights[c];
    }
    return length ? total : 1.0f; /* who sees nothing reads zeros */
}

/* softmax(q k^T) v of head h for rows from n on that read the same keys and values, which are of
   prefixes where there is a `slot` or the rows write `own` ones. */
static inline __attribute__((always_inline)) void
attend_head(const struct Store *store, const float *keys, const float *values, const int32_t *slot,
            long length, long n, long h, float *q, int own, long stride, float *out, float *weights,
            const int queries) {
    long dim = store->dim, width = store->heads * dim, slots = store->slots;
    long room = store->length + LANES;
    float *query = q + n * stride + h * dim, *result = out + n * width + h * dim, total[QUERIES];
    if (store->cosine)
        for (int m = 0; m < queries; m++) turn(store, query + m * stride);
    if (own) scores_of_prefix(query, keys, slot, slots, length, dim, weights);
    else scores_of_source(query, stride, keys, store->capacity, length, dim, weights, room, queries);
    for (int m = 0; m < queries; m++) {
        total[m] = exponentials(store, weights + m * room, length, h);
        if (h < store->first_seen || h >= store->first_seen + store->num_seen) continue;
        float *seen = store->seen + ((n + m) * store->num_seen + h - store->first_seen) * store->length;
        for (long c = 0; c < store->length; c++)
            seen[c] = c < length ? weights[m * room + c] / total[m] : 0.0f;
    }
    long i = 0;
    for (; i + 4 * LANES <= dim; i += 4 * LANES)
        weighted_sums(weights, room, total, values + i, slot, slots, length, dim, result + i, width, 4, queries);
    for (; i + LANES <= dim; i += LANES)
        weighted_sums(weights, room, total, values + i, slot, slots, length, dim, result + i, width, 1, queries);
    for (; i < dim; i++)
        for (int m = 0; m < queries; m++) {
            float sum = 0.0f;
            for (long c = 0; c < length; c++)
                sum += weights[m * room + c] * values[(c * slots + (slot ? slot[c] : 0)) * dim + i];
            result[m * width + i] = sum / total[m];
        }
}

/* softmax(q k^T) v of every head of every row: from q (N, H * d), rows `stride` apart, to out
   (N, H * d). Where `own` is given, row n first writes its key and value, at own + n * stride, to
   its last position; without it the store is one of sources, of which neighbouring rows often read
   the same. Queries are turned where they lie. */
static void attend_rows(const struct Store *store, float *all_keys, float *all_values, float *q,
                        const float *own, long stride, float *out) {
    long heads = store->heads, kv_heads = store->kv_heads, dim = store->dim;
    long group = heads / kv_heads, slots = store->slots, capacity = store->capacity;
    const int32_t *places = store->place;
    float *weights = malloc(QUERIES * (store->length + LANES) * sizeof(float)); /* of each thread */
#pragma omp for collapse(2)
    for (long k = 0; k < kv_heads; k++) { /* the beams of a sentence, one after another, share keys */
        for (long first = 0; first < store->rows; first += QUERIES) {
            long end = first + QUERIES < store->rows ? first + QUERIES : store->rows;
            for (long n = first, queries; n < end; n += queries) {
                for (queries = 1; !own && n + queries < end && places[n + queries] == places[n];) queries++;
                long length = store->lengths ? store->lengths[places[n]] : store->length;
                const int32_t *slot = store->slot ? store->slot + n * store->slot_stride : 0;
                long start = (places[n] * kv_heads + k) * capacity * slots * dim;
                float *keys = all_keys + start, *values = all_values + start;
                if (own) {
                    long last = ((length - 1) * slots + (slot ? slot[length - 1] : 0)) * dim;
                    const float *key = own + n * stride + k * dim, *value = key + kv_heads * dim;
                    for (long i = 0; i < dim; i++) keys[last + i] = key[i];
                    for (long i = 0; i < dim; i++) values[last + i] = value[i];
                    if (store->cosine) turn(store, keys + last);
                }
                for (long h = k * group; h < (k + 1) * group; h++) {
                    if (!weights) { /* no memory: search rejects what is not a number */
                        for (long i = 0; i < queries * dim; i++)
                            out[((n + i / dim) * heads + h) * dim + i % dim] = NAN;
                        continue;
                    }
#define OF(number) case number: \
    attend_head(store, keys, values, slot, length, n, h, q, !!own, stride, out, weights, number); break
                    switch (queries) { OF(1); OF(2); OF(3); OF(4); }
#undef OF
                }
            }
        }
    }
    free(weights);
}

void norm(const struct Norm *by, const float *x, float *out, long rows) {
#pragma omp parallel if (rows * by->columns > ENOUGH)
    norm_rows(by, x, out, rows);
}

void gate(const float *x, float *out, long rows, long columns) {
#pragma omp parallel if (rows * columns > ENOUGH)
    gate_rows(x, out, rows, columns, 1);
}

void silu(const float *x, float *out, long rows, long columns) {
#pragma omp parallel if (rows * columns > ENOUGH)
    gate_rows(x, out, rows, columns, 0);
}

void product(const struct Matrix *matrix, const float *x, uint8_t *vectors, float *scale,
             const float *residual, int relu, float *out, long rows) {
#pragma omp parallel if (rows * matrix->inputs * matrix->outputs > MANY_PRODUCTS)
    multiply(matrix, x, vectors, scale, residual, relu, out, rows);
}

void attend(const struct Store *store, float *all_keys, float *all_values, float *q,
            const float *own, long stride, float *out) {
#pragma omp parallel if (store->rows * store->heads * store->dim * store->length > ENOUGH)
    attend_rows(store, all_keys, all_values, q, own, stride, out);
}

/* The vectors of tokens, (tokens, columns). */
struct Vectors {
    const float *weight;
    long tokens, columns;
    float scale;
};

/* out[n] = weight[ids[n]] * scale [+ added[n % length]]; NaN, which search rejects, for an id beyond the
   table. */
static void embed_rows(const struct Vectors *by, const int64_t *ids, const float *added, long length,
                       float *out, long rows) {
    long columns = by->columns;
#pragma omp for
    for (long n = 0; n < rows; n++) {
        int known = ids[n] >= 0 && ids[n] < by->tokens;
        const float *from = by->weight + (known ? ids[n] : 0) * columns;
        const float *add = added ? added + n % length * columns : 0;
        float scale = known ? by->scale : NAN;
#pragma omp simd
        for (long i = 0; i < columns; i++) out[n * columns + i] = from[i] * scale + (add ? add[i] : 0.0f);
    }
}

/* The keys and values of sources, from rows that are sequences of `length` and have theirs at
   own + n * stride. */
static void lay_out_rows(const struct Store *store, const float *own, long stride, long length,
                         long rows, float *keys, float *values) {
    long heads = store->kv_heads, dim = store->dim, capacity = store->capacity;
#pragma omp for
    for (long n = 0; n < rows; n++)
        for (long k = 0; k < heads; k++) {
            long first = (n / length * heads + k) * capacity * dim, c = n % length;
            const float *key = own + n * stride + k * dim, *value = key + heads * dim;
            for (long i = 0; i < dim; i++) keys[first + i * capacity + c] = key[i];
            for (long i = 0; i < dim; i++) values[first + c * dim + i] = value[i];
        }
}

/* One of the functions above; `by` is its Vectors, Norm, Matrix or Store. */
enum kind { EMBED, NORM, PRODUCT, GATE, SILU, ATTEND, LAY_OUT };
struct Operation {
    long kind, relu, width, length; /* width: of an activation, or from row to row of what attends */
    const void *by;
    float *from, *add, *to, *keys, *values;
};

/* Many operations, for which the threads meet once. `work` tells the products of a row. */
void run(const struct Operation *operations, long count, uint8_t *vectors, float *scale, long rows,
         long work) {
#pragma omp parallel if (rows * work > MANY_PRODUCTS)
    for (const struct Operation *each = operations; each < operations + count; each++) {
        float *from = each->from, *add = each->add, *to = each->to;
        switch (each->kind) {
        case EMBED: embed_rows(each->by, (const int64_t *)from, add, each->length, to, rows); break;
        case NORM: norm_rows(each->by, from, to, rows); break;
        case PRODUCT: multiply(each->by, from, vectors, scale, add, each->relu, to, rows); break;
        case GATE: gate_rows(from, to, rows, each->width, 1); break;
        case SILU: gate_rows(from, to, rows, each->width, 0); break;
        case ATTEND: attend_rows(each->by, each->keys, each->values, from, add, each->width, to); break;
        case LAY_OUT: lay_out_rows(each->by, from, each->width, each->length, rows, each->keys, each->values);
        }
    }
}

/* The largest number of a row and log(sum(exp(x - largest))), which is NaN where the row has NaN or
   infinity, or nothing but minus infinity. */
struct Share { float largest, total; };
static struct Share share_of(const float *from, long columns) {
    float largest = -INFINITY, total = 0.0f;
#pragma omp simd reduction(max : largest)
    for (long i = 0; i < columns; i++) largest = from[i] > largest ? from[i] : largest;
#pragma omp simd reduction(+ : total)
    for (long i = 0; i < columns; i++) total += exponential(from[i] - largest);
    return (struct Share){largest, logf(total)};
}

/* logits - log(sum(exp(logits))) of each row of x (N, columns); NaN where a row has NaN or infinity. */
void log_softmax(const float *x, float *out, long rows, long columns) {
#pragma omp parallel for if (rows * columns > ENOUGH)
    for (long n = 0; n < rows; n++) {
        const float *from = x + n * columns;
        float *to = out + n * columns;
        struct Share share = share_of(from, columns);
#pragma omp simd
        for (long i = 0; i < columns; i++) to[i] = from[i] - share.largest - share.total;
    }
}

/* Number i of a row of float32, or of bfloat16 if `half`: the upper half of a float32, rounded to the
   nearest, and to the even one of two. */
static inline __attribute__((always_inline)) float load(const void *row, long i, const int half) {
    if (!half) return ((const float *)row)[i];
    union { uint32_t bits; float number; } x = {.bits = (uint32_t)((const uint16_t *)row)[i] << 16};
    return x.number;
}
static inline __attribute__((always_inline)) void
store(void *row, long i, float number, const int half) {
    union { float number; uint32_t bits; } x = {.number = number};
    uint16_t rounded = number == number ? (x.bits + 0x7FFF + (x.bits >> 16 & 1)) >> 16 : 0x7FC0;
    if (half) ((uint16_t *)row)[i] = rounded;
    else ((float *)row)[i] = number;
}

static inline __attribute__((always_inline)) void
drop_part(const void *x, const uint8_t *random, void *out, long start, long end, int threshold,
          float scale, const int half) {
#pragma omp simd
    for (long i = start; i < end; i++)
        store(out, i, load(x, i, half) * (random[i] >= threshold ? scale : 0.0f), half);
}

/* out = x * (random >= threshold) * scale; x and out are bfloat16 if `half`. */
void drop(const void *x, const uint8_t *random, void *out, long count, int threshold, float scale,
          int half) {
#pragma omp parallel for if (count > ENOUGH)
    for (long start = 0; start < count; start += PART) {
        long end = start + PART < count ? start + PART : count;
        if (half) drop_part(x, random, out, start, end, threshold, scale, 1);
        else drop_part(x, random, out, start, end, threshold, scale, 0);
    }
}

static inline __attribute__((always_inline)) float
cross_entropy_row(void *row, long target, long columns, float smoothing, int gradient,
                  const int half) {
    float largest = -INFINITY, total = 0.0f, sum = 0.0f, share = smoothing / columns;
    float right = load(row, target, half);
#pragma omp simd reduction(max : largest) reduction(+ : sum)
    for (long i = 0; i < columns; i++) {
        float logit = load(row, i, half);
        largest = logit > largest ? logit : largest;
        sum += logit;
    }
#pragma omp simd reduction(+ : total)
    for (long i = 0; i < columns; i++) total += exponential(load(row, i, half) - largest);
    if (gradient) {
        float scale = 1.0f / total;
#pragma omp simd
        for (long i = 0; i < columns; i++)
            store(row, i, exponential(load(row, i, half) - largest) * scale - share, half);
        store(row, target, exponential(right - largest) * scale - share - (1.0f - smoothing), half);
    }
    return largest + logf(total) - (1.0f - smoothing) * right - share * sum;
}

/* loss[n] = log sum_v exp(z_v) - (1 - smoothing) z_y - smoothing / columns sum_v z_v for each row z of
   x (N, columns), whose target is y; if `gradient`, z becomes softmax(z) - smoothing / columns, less
   1 - smoothing at y. x is bfloat16 if `half`. NaN where a row has NaN or infinity. Returns how many
   targets are no column; their rows are left alone. */
int cross_entropy(void *x, const int64_t *targets, float *loss, long rows, long columns,
                  float smoothing, int gradient, int half) {
    int wrong = 0;
#pragma omp parallel for reduction(+ : wrong) if (rows * columns > ENOUGH)
    for (long n = 0; n < rows; n++)
        if (targets[n] < 0 || targets[n] >= columns) wrong++;
        else if (half)
            loss[n] = cross_entropy_row((uint16_t *)x + n * columns, targets[n], columns, smoothing,
                                        gradient, 1);
        else
            loss[n] = cross_entropy_row((float *)x + n * columns, targets[n], columns, smoothing,
                                        gradient, 0);
    return wrong;
}

#define CHUNK 64

/* The k largest of a row of numbers x - share, in falling order, the lower index first among equals.
   Chunks without a number above the k-th so far are passed over. */
static void top_of_row(const float *from, struct Share share, long k, float *best, int64_t *where,
                       long columns) {
    long found = 0;
    for (long start = 0; start < columns; start += CHUNK) {
        long end = start + CHUNK < columns ? start + CHUNK : columns;
        float largest = -INFINITY;
#pragma omp simd reduction(max : largest)
        for (long i = start; i < end; i++) largest = from[i] > largest ? from[i] : largest;
        if (found == k && !(largest - share.largest - share.total > best[k - 1])) continue;
        for (long i = start; i < end; i++) {
            float value = from[i] - share.largest - share.total;
            if (found == k && !(value > best[k - 1])) continue;
            long place = found < k ? found++ : k - 1;
            for (; place > 0 && value > best[place - 1]; place--) {
                best[place] = best[place - 1];
                where[place] = where[place - 1];
            }
            best[place] = value;
            where[place] = i;
        }
    }
}

/* The k largest of each row of x (N, columns) and their places. */
void top(const float *x, long k, float *values, int64_t *indices, long rows, long columns) {
#pragma omp parallel for if (rows * columns > ENOUGH)
    for (long n = 0; n < rows; n++)
        top_of_row(x + n * columns, (struct Share){0}, k, values + n * k, indices + n * k, columns);
}

/* The open prefixes of a beam search, W slots for each sentence (`decode/beam.py`): their
   log-probabilities (B, W), minus infinity where a slot is closed; the scores (B, best) of the best
   that are complete; for each sentence the slots that are not used up, the greatest length, and the
   penalty of that. */
struct Beams {
    float *log_probs, *best_scores, *greatest_penalty;
    int64_t *slots, *most;
    long width, best, eos;
};

/* What a step chose for each of the B W slots: `struct Advance` of `decode/protocol.py`. */
struct Chosen {
    int64_t *tokens, *parents;
    float *values, *log_probs, *scores;
    uint8_t *ended, *open;
};

/* Rank the continuations of the slots of sentence b, k of each, and fill the slots that are open. Returns
   whether a hypothesis ended or the sentence is decided. */
static int choose(const struct Beams *beams, const struct Chosen *chosen, const float *values,
                   const int64_t *tokens, long k, long b, long length, float penalty) {
    long width = beams->width, best = beams->best, first = b * width, count = 0, used = 0;
    float *open = beams->log_probs + first, *sums = chosen->log_probs + first;
    float *scores = beams->best_scores + b * best, reachable = -INFINITY;
    int64_t *from = chosen->parents + first;
    for (long n = 0; n < width * k; n++) { /* those of a slot fall */
        float sum = open[n / k] + values[first * k + n];
        if (!(sum > -INFINITY) || (count == width && !(sum > sums[width - 1]))) {
            n += k - 1 - n % k;
            continue;
        }
        long place = count < width ? count++ : width - 1;
        for (; place > 0 && sum > sums[place - 1]; place--) {
            sums[place] = sums[place - 1];
            from[place] = from[place - 1];
        }
        sums[place] = sum;
        from[place] = n;
    }
    for (long w = 0; w < width; w++) {
        long n = w < count ? from[w] : 0, slot = first + w, is_open = w < count && w < beams->slots[b];
        if (w >= count) sums[w] = -INFINITY;
        chosen->tokens[slot] = tokens[first * k + n];
        chosen->values[slot] = values[first * k + n];
        chosen->scores[slot] = sums[w] / penalty;
        chosen->parents[slot] = first + n / k;
        chosen->ended[slot] = is_open && (chosen->tokens[slot] == beams->eos || beams->most[b] <= length);
        open[w] = is_open && !chosen->ended[slot] ? sums[w] : -INFINITY;
        reachable = open[w] > reachable ? open[w] : reachable;
        if (!chosen->ended[slot]) continue;
        used++;
        float score = chosen->scores[slot];
        for (long i = 0; i < best; i++) /* the worst falls out */
            if (score > scores[i]) { float other = scores[i]; scores[i] = score; score = other; }
    }
    beams->slots[b] -= used;
    int undecided = reachable / beams->greatest_penalty[b] > scores[best - 1];
    for (long w = 0; w < width; w++) chosen->open[first + w] = undecided && open[w] > -INFINITY;
    return used || !undecided;
}

/* One step of a beam search over B sentences, from the logits (M, columns) of all slots, or of the open
   ones if `only_open`. The k best of a slot are written to `values` and `tokens` (B W, k). Returns the
   number of sentences that `choose` tells of, or -1 where a row has no probabilities. */
long advance(const struct Beams *beams, const struct Chosen *chosen, const float *logits,
             int only_open, float *values, int64_t *tokens, long k, long sentences, long columns,
             long length, float penalty) {
    long rows = sentences * beams->width, broken = 0, given = 0;
    for (long n = 0; n < rows; n++) /* where its logits are */
        chosen->parents[n] = only_open ? (given += beams->log_probs[n] > -INFINITY) - 1 : n;
#pragma omp parallel for reduction(+ : broken) if (rows * columns > ENOUGH)
    for (long n = 0; n < rows; n++) {
        if (!(beams->log_probs[n] > -INFINITY)) {
            for (long i = 0; i < k; i++) values[n * k + i] = -INFINITY, tokens[n * k + i] = 0;
            continue;
        }
        const float *from = logits + chosen->parents[n] * columns;
        struct Share share = share_of(from, columns);
        if (share.total == share.total)
            top_of_row(from, share, k, values + n * k, tokens + n * k, columns);
        else
            broken++;
    }
    if (broken) return -1;
    long news = 0;
    for (long b = 0; b < sentences; b++)
        news += choose(beams, chosen, values, tokens, k, b, length, penalty);
    return news;
}

/* What compiled code needs to take steps of a search by itself: the operations of a step, the first of
   which reads tokens, and where the last leaves its logits (rows, columns); the prefixes, the table of
   their slots where a sentence has several, and memory to reorder it in; what is added to the vectors
   of the tokens at each of the next positions, (most, width), and how these are turned. */
struct Ahead {
    struct Operation *operations;
    uint8_t *vectors;
    float *scale, *logits;
    struct Store *store;
    int32_t *slots, *reordered;
    const int32_t *own;
    const float *added, *cosine, *sine;
    long count, work, columns, width, most;
};

/* The rows that are open, before and after each of these steps: the tokens that they read, the slot of
   each and the row of each slot; and what the steps before the last chose for each of the N slots:
   from which slot it comes, and its tokens and their log-probabilities (N, most). `chosen` is memory
   for (most, N) of what comes out. */
struct Written {
    int64_t *reads;
    const int64_t *slot_of, *row_of;
    int64_t *origins, *tokens, *chosen_tokens, *chosen_parents;
    float *values, *chosen_values;
    const int64_t *forbidden;
    long num_forbidden;
};

/* One step of the operations: the logits of all rows, with those of forbidden tokens minus infinity. What
   the first operation and the store are given here lives as long as the call; a later step, wherever it is
   taken, gives them its own. */
static void step_ahead(const struct Ahead *by, const struct Written *written, long step) {
    struct Store *store = by->store;
    long pairs = store->dim / 2, last = store->length++;
    by->operations->from = (float *)written->reads;
    by->operations->add = by->added ? (float *)by->added + step * by->width : 0;
    if (by->cosine) {
        store->cosine = by->cosine + step * pairs;
        store->sine = by->sine + step * pairs;
    }
    if (by->slots)
        for (long m = 0; m < store->rows; m++) by->slots[m * store->slot_stride + last] = by->own[m];
    run(by->operations, by->count, by->vectors, by->scale, store->rows, by->work);
    for (long m = 0; m < store->rows; m++)
        for (long i = 0; i < written->num_forbidden; i++)
            by->logits[m * by->columns + written->forbidden[i]] = -INFINITY;
}

/* Whether the slots that are open are those of the rows. */
static int same_rows(const struct Written *written, const uint8_t *open, long rows, long slots) {
    long all = 0, known = 0;
    for (long n = 0; n < slots; n++) all += open[n];
    for (long m = 0; m < rows; m++) known += open[written->slot_of[m]];
    return all == rows && known == rows;
}

/* Let each row be the continuation of its parent. */
static void follow(const struct Ahead *by, const struct Written *written, const struct Chosen *chosen) {
    struct Store *store = by->store;
    long stride = store->slot_stride, bytes = store->length * sizeof(int32_t);
    for (long m = 0; m < store->rows; m++) {
        long slot = written->slot_of[m], parent = written->row_of[chosen->parents[slot]];
        written->reads[m] = chosen->tokens[slot];
        if (by->slots) memcpy(by->reordered + m * stride, by->slots + parent * stride, bytes);
    }
    for (long m = 0; by->slots && m < store->rows; m++)
        memcpy(by->slots + m * stride, by->reordered + m * stride, bytes);
}

/* `run` and `advance`, step by step, until there is news, other rows are open, `most` steps are taken
   or `*calls` is not `seen`. The last step's choice is in `chosen`, as after `advance`. Returns the number of
   steps, less than 0 if there is news, and 0 where a row has no probabilities. */
long write_ahead(const struct Ahead *by, const struct Written *written, const struct Beams *beams,
                 const struct Chosen *chosen, float *values, int64_t *tokens, long k, long sentences,
                 long length, const float *penalties, const volatile long *calls, long seen) {
    long rows = by->store->rows, slots = sentences * beams->width, step = 0, news;
    for (;; step++) {
        step_ahead(by, written, step);
        news = advance(beams, chosen, by->logits, rows < slots, values, tokens, k, sentences, by->columns,
                       length + step, penalties[step]);
        if (news < 0) return 0;
        if (news || step + 1 == by->most || *calls != seen) break;
        if (!same_rows(written, chosen->open, rows, slots)) break;
        memcpy(written->chosen_tokens + step * slots, chosen->tokens, slots * sizeof(int64_t));
        memcpy(written->chosen_parents + step * slots, chosen->parents, slots * sizeof(int64_t));
        memcpy(written->chosen_values + step * slots, chosen->values, slots * sizeof(float));
        follow(by, written, chosen);
    }
    for (long n = 0; n < slots; n++) {
        long from = n;
        for (long i = step; i-- > 0;) {
            written->tokens[n * by->most + i] = written->chosen_tokens[i * slots + from];
            written->values[n * by->most + i] = written->chosen_values[i * slots + from];
            from = written->chosen_parents[i * slots + from];
        }
        written->origins[n] = from;
    }
    return news ? -(step + 1) : step + 1;
}
