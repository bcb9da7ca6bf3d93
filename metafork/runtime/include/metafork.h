/* The words of MetaFork, defined away: what stays is the C that a program means.
 *
 * With #include "metafork.h" (its folder is what `metafork include-dir` prints) compilers and editors take a file as it is.
 * metafork itself leaves the line out.
 */
#ifndef METAFORK_H
#define METAFORK_H
#if !defined(meta_for)
#define meta_schedule
#define meta_for for
#define meta_atomic
#define meta_reduction(...)
#define meta_block(...)
#define meta_grid(...)
#define meta_min_blocks(...)
#define meta_static(...)
#define cache(...)
#endif
#endif
