/* The definition of metafork_machine_query, for the generated files of kernels.  C11 and C++.
 *
 * Every generated file holds it as a weak function, so that several of them link into one program.
 */
#ifndef METAFORK_MACHINE_QUERY_H
#define METAFORK_MACHINE_QUERY_H

#include "metafork/machine.h"

METAFORK_DEFINITION int metafork_machine_query(int device, metafork_machine *out) {
    static int said;
    const char *text = metafork_setting("METAFORK_MACHINE");
    const char *fault = text;
    if (out == NULL) return METAFORK_EINVAL;
    const int error = metafork_hardware_query(device, out);
    if (error != 0 || text == NULL) return error;
    if (metafork_machine_override(out, text, &fault) == METAFORK_OK) return METAFORK_OK;
    if (!__atomic_exchange_n(&said, 1, __ATOMIC_RELAXED))
        fprintf(stderr, "metafork: METAFORK_MACHINE=\"%s\" cannot be read at \"%s\"; expected sm_80, gfx942 "
                        "or R=63,T=1024,Z=12288 (dimensions and warp_size at least 1)\n", text, fault);
    return METAFORK_EMACHINE;
}

#endif
