// Three leaves, of which the first has two variants, with registers and faults that the command line gives: what a GPU's compiler
// and driver would say.
//
//   drop-in=LEAF|launch=LEAF  what is called, with the leaf that the tree gives (-1: outside of Start) or that is launched
//   R=N                       registers that the machine has
//   LEAF.VARIANT[jit]=N,ERROR registers of a kernel as compiled (-1: not measured), and the error of checking it
//   fault=ERROR               the error of the launch
//   again=CHANGE              launch once more, after a change: none, of an integer, place, machine or leaf; or the second fails (fails)
//   b=N                       where array b begins in a
//   written=N                 which of the two is written (1: a, 2: b, 3: both)
//   moved=1                   code before the next schedule moves an array
#include "metafork/dispatch.h"

#include <map>
#include <string>

static const metafork_term number[] = {{1, 1, {0}}}, limit[] = {{1, 1, {1}}}, whole[] = {{16, 1, {1}}}, two[] = {{2, 1, {0}}};
static const metafork_condition of_one = {{number, 1}, METAFORK_AT_MOST, {limit, 1}, "x <= R"};
static const metafork_condition of_two = {{two, 1}, METAFORK_AT_MOST, {limit, 1}, "2*x <= R"};
// By estimate, a variant that is compiled at run time too takes twice x registers, and leaf 1 by itself x; leaf 2 twice as many.
static const metafork_limit once[] = {{"r", of_one, METAFORK_REGISTERS_PER_THREAD}}, twice[] = {{"r", of_two, METAFORK_REGISTERS_PER_THREAD}};
static const metafork_limit of_block[] = {{"r", {{number, 1}, METAFORK_AT_MOST, {whole, 1}, "x <= 16*R"}, METAFORK_REGISTERS_PER_BLOCK}};
static const metafork_variant variants1[] = {{&of_two, 1, twice, 1, true}, {nullptr, 0, once, 1, true}};
static const metafork_variant variants2[] = {{nullptr, 0, twice, 1, false}}, variants3[] = {{nullptr, 0, of_block, 1, false}};
static const metafork_leaf leaves[] = {{variants1, 2}, {variants2, 1}, {variants3, 1}};
static metafork_use uses[] = {{"a", true, false, false, false, false}, {"b", false, false, false, false, false}};
static int said;
static const metafork_schedule schedule = {"s", leaves, 3, nullptr, 0, uses, 2, nullptr, 0, &said, nullptr, 0, -1};

static std::map<std::string, std::string> given = {{"b", "4"}, {"written", "1"}};

static int choices;
static bool fails;

static int chosen(const void *, const metafork_machine *, int64_t *values)
{
    choices++;
    values[0] = 32;
    values[1] = atoll(given["R"].c_str());
    return atoi(given["drop-in"].c_str());
}

static int attempted(const void *, int leaf, bool go, metafork_shape *shape, void *, void *const *device)
{
    const int variant = shape->variant != 0 ? shape->variant : leaves[leaf - 1].variant_count;
    const std::string name = std::to_string(leaf) + "." + std::to_string(variant) + (shape->compiled ? "jit" : "");
    int error = shape->compiled ? METAFORK_EUNSUPPORTED : METAFORK_OK;
    for (int axis = 0; axis < 3; axis++) shape->grid[axis] = shape->block[axis] = 1;
    shape->block[0] = 33;
    long long registers = -1;
    sscanf(given[name].c_str(), "%lld,%d", &registers, &error);
    shape->registers = registers;
    if (!go) return error;
    if (shape->ready && fails) return METAFORK_EUNSUPPORTED;
    metafork_trace_launch("s", leaf, shape, nullptr, nullptr, 0);
    printf("%s\n", name.c_str());
    static_cast<int *>(device[0])[1] = leaf * 10;
    return atoi(given["fault"].c_str());
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const std::string text = argv[i];
        given[text.substr(0, text.find('='))] = text.substr(text.find('=') + 1);
    }
    int data[8] = {1, 2, 3, 4};
    void *const arrays[] = {data, data + atoi(given["b"].c_str())};
    const int64_t bytes[] = {4 * sizeof *data, 4 * sizeof *data};
    for (int i = 0; i < 2; i++) uses[i].written = (atoi(given["written"].c_str()) >> i & 1) != 0;
    int64_t values[2] = {};
    if (given.count("launch") != 0) {
        static __thread metafork_recent recent;
        static __thread int64_t integers[1];
        int64_t inputs[] = {5, 6};
        int leaf = atoi(given["launch"].c_str());
        void *places[] = {arrays[0], arrays[1]};
        const auto launched = [&] {
            return metafork_launch_leaf(&schedule, chosen, values, attempted, inputs, leaf, nullptr, places, &recent, integers, 1);
        };
        printf("%d\n", launched());
        const std::string change = given["again"];
        if (change.empty()) return 0;
        inputs[0] += change == "integer";
        inputs[1] += change == "value";
        places[1] = data + (change == "place" ? 5 : 4);
        leaf += change == "leaf";
        fails = change == "fails";
        if (change == "machine") setenv("METAFORK_MACHINE", "R=60", 1);
        printf("%d\n", launched());
        printf("%d choices\n", choices);
        return 0;
    }
    const int ran = metafork_dispatch(&schedule, arrays, bytes, nullptr, false, false, false, values, nullptr, chosen, attempted);
    if (!given["moved"].empty() && !metafork_unchanged(0, "s")) printf("moved: %d %d\n", data[0], data[1]);
    metafork_enter();
    metafork_leave(nullptr);
    printf("%d: %d %d\n", ran, data[0], data[1]);
    return metafork_residents_of_thread()->count;
}
