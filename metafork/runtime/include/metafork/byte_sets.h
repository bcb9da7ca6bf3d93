/* Sets of bytes that columns and rows of arrays are: stretches of one length at one distance.  C11 and C++. */
#ifndef METAFORK_BYTE_SETS_H
#define METAFORK_BYTE_SETS_H

#include <stdbool.h>
#include <stdint.h>

/* `count` rows of `width` bytes, the first at `first`, each `stride` bytes behind the one before; stride >= width.  One row has
 * its width for a stride. */
typedef struct metafork_rows {
    int64_t first, width, stride, count;
} metafork_rows;

enum {
    METAFORK_MOST_ROWS = 24,
    METAFORK_FEW_ROWS = 4 /* that are taken one by one where two distances have nothing to do with each other */
};

/* No byte is in two of them. */
typedef struct metafork_bytes {
    int count;
    metafork_rows at[METAFORK_MOST_ROWS];
} metafork_bytes;

static inline metafork_rows metafork_stretch(int64_t first, int64_t behind) {
    const metafork_rows one = {first, behind - first, behind - first, 1};
    return one;
}

static inline int64_t metafork_behind(metafork_rows one) { return one.first + (one.count - 1) * one.stride + one.width; }

/* From the first byte to the last. */
static inline metafork_rows metafork_hull(metafork_rows one) { return metafork_stretch(one.first, metafork_behind(one)); }

/* Those rows whose numbers are from `from` to before `to`. */
static inline metafork_rows metafork_some(metafork_rows rows, int64_t from, int64_t to) {
    const metafork_rows some = {rows.first + from * rows.stride, rows.width, rows.stride, to - from};
    return some;
}

/* The quotient, rounded down. */
static inline int64_t metafork_row_of(int64_t left, int64_t right) {
    const int64_t quotient = left / right;
    return quotient - (left % right < 0);
}

/* Which rows meet the bytes from `first` to before `behind`. */
static inline void metafork_meeting(metafork_rows rows, int64_t first, int64_t behind, int64_t *from, int64_t *to) {
    *from = metafork_row_of(first - rows.first - rows.width, rows.stride) + 1;
    *to = -metafork_row_of(rows.first - behind, rows.stride);
    if (*from < 0) *from = 0;
    if (*to > rows.count) *to = rows.count;
    if (*to < *from || behind <= first) *to = *from;
}

/* Append rows that meet none of the set; false where there is no room. */
static inline bool metafork_put(metafork_bytes *set, metafork_rows rows) {
    if (rows.count <= 0 || rows.width <= 0) return true;
    if (set->count == METAFORK_MOST_ROWS) return false;
    if (rows.count == 1 || rows.stride == rows.width) rows = metafork_hull(rows);
    set->at[set->count++] = rows;
    return true;
}

/* Columns from `left` to before `right`, in bytes, of the rows numbered from `from` to before `to` of other rows. */
typedef struct metafork_block {
    int64_t left, right, from, to;
} metafork_block;

/* The places that `other`, of the same stride, has in `rows`: two where one of its rows goes from one of theirs into the next;
 * else the second one is empty. */
static inline void metafork_aligned(metafork_rows rows, metafork_rows other, metafork_block *parts) {
    const int64_t row = metafork_row_of(other.first - rows.first, rows.stride);
    const int64_t column = other.first - rows.first - row * rows.stride, right = column + other.width;
    const metafork_block first = {column, right < rows.stride ? right : rows.stride, row, row + other.count};
    const metafork_block second = {0, right - rows.stride, row + 1, row + 1 + other.count};
    parts[0] = first;
    parts[1] = second;
}

static inline metafork_block metafork_within_rows(metafork_rows rows, metafork_block part) {
    if (part.right > rows.width) part.right = rows.width;
    if (part.from < 0) part.from = 0;
    if (part.to > rows.count) part.to = rows.count;
    if (part.right <= part.left || part.to <= part.from) part.to = part.from = 0;
    return part;
}

static inline bool metafork_apart(metafork_rows left, metafork_rows right) {
    return metafork_behind(left) <= right.first || metafork_behind(right) <= left.first;
}

/* Append what two have in common; false where that is not known or has no room. */
static inline bool metafork_put_common(metafork_bytes *set, metafork_rows left, metafork_rows right) {
    bool whole = true;
    if (metafork_apart(left, right)) return true;
    if (left.count == 1 || right.count == 1) {
        const metafork_rows rows = left.count == 1 ? right : left, one = left.count == 1 ? left : right;
        const int64_t first = one.first, behind = metafork_behind(one);
        int64_t from, to;
        metafork_meeting(rows, first, behind, &from, &to);
        if (from < to && rows.first + from * rows.stride < first) {
            const int64_t end = rows.first + from * rows.stride + rows.width;
            whole = metafork_put(set, metafork_stretch(first, end < behind ? end : behind));
            from++;
        }
        if (from < to && rows.first + (to - 1) * rows.stride + rows.width > behind) {
            to--;
            whole = whole && metafork_put(set, metafork_stretch(rows.first + to * rows.stride, behind));
        }
        return whole && metafork_put(set, metafork_some(rows, from, to));
    }
    if (left.stride == right.stride) {
        metafork_block parts[2];
        metafork_aligned(left, right, parts);
        for (int i = 0; i < 2; i++) {
            const metafork_block part = metafork_within_rows(left, parts[i]);
            const metafork_rows common = {left.first + part.from * left.stride + part.left, part.right - part.left, left.stride, part.to - part.from};
            whole = whole && metafork_put(set, common);
        }
        return whole;
    }
    const metafork_rows few = left.count < right.count ? left : right, many = left.count < right.count ? right : left;
    if (few.count > METAFORK_FEW_ROWS) return false;
    for (int64_t row = 0; row < few.count && whole; row++) whole = metafork_put_common(set, metafork_some(few, row, row + 1), many);
    return whole;
}

/* Append what `left` has and a part, by its place in it, has not. */
static inline bool metafork_put_outside(metafork_bytes *set, metafork_rows left, metafork_block part) {
    part = metafork_within_rows(left, part);
    metafork_rows before = metafork_some(left, part.from, part.to), after = before;
    before.width = part.left;
    after.first += part.right;
    after.width = left.width - part.right;
    return metafork_put(set, metafork_some(left, 0, part.from)) && metafork_put(set, metafork_some(left, part.to, left.count)) &&
           metafork_put(set, before) && metafork_put(set, after);
}

/* Append what `left` has and `right` has not; false where that is not known or has no room. */
static inline bool metafork_put_rest(metafork_bytes *set, metafork_rows left, metafork_rows right) {
    if (metafork_apart(left, right)) return metafork_put(set, left);
    int64_t from, to;
    if (right.count == 1) {
        const int64_t first = right.first, behind = metafork_behind(right);
        metafork_meeting(left, first, behind, &from, &to);
        if (from == to) return metafork_put(set, left);
        return metafork_put(set, metafork_some(left, 0, from)) &&
               metafork_put(set, metafork_stretch(left.first + from * left.stride, first)) &&
               metafork_put(set, metafork_stretch(behind, left.first + (to - 1) * left.stride + left.width)) &&
               metafork_put(set, metafork_some(left, to, left.count));
    }
    if (left.count == 1) {
        metafork_meeting(right, left.first, metafork_behind(left), &from, &to);
        if (from == to) return metafork_put(set, left);
        metafork_rows gaps = metafork_some(right, from, to - 1);
        gaps.first += right.width;
        gaps.width = right.stride - right.width;
        return metafork_put(set, metafork_stretch(left.first, right.first + from * right.stride)) && metafork_put(set, gaps) &&
               metafork_put(set, metafork_stretch(right.first + (to - 1) * right.stride + right.width, metafork_behind(left)));
    }
    if (left.stride == right.stride) {
        metafork_block parts[2];
        metafork_bytes rest;
        rest.count = 0;
        metafork_aligned(left, right, parts);
        if (!metafork_put_outside(&rest, left, parts[0])) return false;
        /* What the other part takes away has its columns in front of the first part's: it goes on in the next row. */
        const metafork_rows second = {left.first + parts[1].from * left.stride, parts[1].right, left.stride, right.count};
        if (second.width <= 0) {
            for (int i = 0; i < rest.count; i++)
                if (!metafork_put(set, rest.at[i])) return false;
            return true;
        }
        for (int i = 0; i < rest.count; i++)
            if (!metafork_put_rest(set, rest.at[i], second)) return false;
        return true;
    }
    metafork_bytes rest;
    rest.count = 0;
    if (right.count <= METAFORK_FEW_ROWS) {
        rest.count = 1;
        rest.at[0] = left;
        for (int64_t row = 0; row < right.count; row++) {
            metafork_bytes next;
            next.count = 0;
            for (int i = 0; i < rest.count; i++)
                if (!metafork_put_rest(&next, rest.at[i], metafork_some(right, row, row + 1))) return false;
            rest = next;
        }
        for (int i = 0; i < rest.count; i++)
            if (!metafork_put(set, rest.at[i])) return false;
        return true;
    }
    if (left.count > METAFORK_FEW_ROWS) return false;
    for (int64_t row = 0; row < left.count; row++)
        if (!metafork_put_rest(set, metafork_some(left, row, row + 1), right)) return false;
    return true;
}

/* Whether some byte is in both; where that is not known it may be. */
static inline bool metafork_meets(const metafork_bytes *set, metafork_rows rows) {
    metafork_bytes common;
    common.count = 0;
    for (int i = 0; i < set->count; i++)
        if (!metafork_put_common(&common, set->at[i], rows) || common.count > 0) return true;
    return false;
}

/* Make one of two, where they are a stretch or rows again; `one` is changed only then. */
static inline bool metafork_join(metafork_rows *one, metafork_rows other) {
    const metafork_rows before = other.first < one->first ? other : *one, after = other.first < one->first ? *one : other;
    metafork_rows joined = before;
    if (before.count == 1 && after.count == 1 && metafork_behind(before) == after.first) {
        joined = metafork_stretch(before.first, metafork_behind(after));
    } else if (before.count > 1 && before.count == after.count && before.stride == after.stride && before.first + before.width == after.first) {
        joined.width += after.width;
    } else if (before.count > 1 && before.width == after.width && before.first + before.count * before.stride == after.first &&
               (after.count == 1 || before.stride == after.stride)) {
        joined.count += after.count;
    } else {
        return false;
    }
    if (joined.width > joined.stride) return false;
    *one = joined.width == joined.stride ? metafork_hull(joined) : joined;
    return true;
}

/* Take rows away; false, and nothing is changed, where the rest is not known or too much. */
static inline bool metafork_exclude(metafork_bytes *set, metafork_rows rows) {
    metafork_bytes rest;
    rest.count = 0;
    for (int i = 0; i < set->count; i++)
        if (!metafork_put_rest(&rest, set->at[i], rows)) return false;
    *set = rest;
    return true;
}

/* Add rows; false, and nothing is changed, where the union is not known or too much. */
static inline bool metafork_include(metafork_bytes *set, metafork_rows rows) {
    metafork_bytes all = *set;
    if (rows.count <= 0 || rows.width <= 0) return true;
    if (!metafork_exclude(&all, rows)) return false;
    if (rows.count == 1 || rows.stride == rows.width) rows = metafork_hull(rows);
    for (bool joined = true; joined;) {
        joined = false;
        for (int i = 0; i < all.count && !joined; i++) {
            joined = metafork_join(&rows, all.at[i]);
            if (joined) all.at[i] = all.at[--all.count];
        }
    }
    if (!metafork_put(&all, rows)) return false;
    *set = all;
    return true;
}

/* Whether all bytes are in a set; where that is not known they are not. */
static inline bool metafork_has_all(const metafork_bytes *set, metafork_rows rows) {
    metafork_bytes rest;
    rest.count = 0;
    bool known = metafork_put(&rest, rows);
    for (int i = 0; i < set->count && known && rest.count > 0; i++) known = metafork_exclude(&rest, set->at[i]);
    return known && rest.count == 0;
}

/* By the first byte. */
static inline void metafork_sort(metafork_bytes *set) {
    for (int i = 1; i < set->count; i++) {
        const metafork_rows one = set->at[i];
        int j = i;
        for (; j > 0 && set->at[j - 1].first > one.first; j--) set->at[j] = set->at[j - 1];
        set->at[j] = one;
    }
}

#endif
