// Executes the SASS of one kernel (the text of nvdisasm for sm_80) on the CPU, and counts what it does.
//
//   sasstrace JOB --stats FILE
//
// JOB, one item a line: sass FILE | kernel NAME | grid X Y Z | block X Y Z | smem BYTES
//   param HEX                     the parameters, as they lie from c[0x0][0x160] on
//   memory BASE BYTES IN OUT      global memory at an address (decimal); what it holds is read from IN, and written to OUT if changed
//
// All blocks, warps and lanes run, one after the other; a warp runs until it ends or meets a barrier.  Of the lanes that are not
// waiting, those with the lowest address go first, so that they meet again where paths join.  Values are those of the hardware for
// integers, conversions, + - * fma in fp32 and fp64 with their rounding modes; MUFU is computed exactly and rounded once.
// Asynchronous copies are done at once.  What is not implemented ends the run with its name.
#include <algorithm>
#include <cfenv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <unordered_set>
#include <vector>
using std::string; using std::vector;
typedef uint32_t u32; typedef int32_t i32; typedef uint64_t u64; typedef int64_t i64;
[[noreturn]] static void die(const string &m) { fprintf(stderr, "sasstrace: %s\n", m.c_str()); exit(1); }

enum Kind { REG, UREG, PRED, UPRED, IMM, FIMM, CONST, MEM, SPECIAL, LABEL, BARRIER, NONE };
struct Operand {
  Kind kind = NONE; int reg = 255; bool neg = false, abs = false, inv = false, wide = false, isnot = false;
  u32 imm = 0; double f = 0; int bank = 0; i64 offset = 0; int ureg = 63; int ireg = 255; string text;
};
struct Inst {
  int pc; string full, op; vector<string> mods; vector<Operand> o; int pred = 7; bool pneg = false, upred = false;
  int target = -1; int width = 4; u64 count = 0, lanes = 0, sectors = 0, wavefronts = 0; int code = 0;
  bool X = false, is_move = false, unordered = false, sat = false; int round = FE_TONEAREST; int cmp = 0, boolop = 0; bool uns = false, ex = false;
  bool has(const char *m) const { for (auto &x : mods) if (x == m) return true; return false; }
};
enum { RZ = 255, URZ = 63, PT = 7 };
enum Code { C_NONE, MOV, IMAD, IMADX, IMADHI, IMADWIDE, IADD3, LEA, LEAHI, SHF, LOP3, PLOP3, ISETP, FSETP, SEL, FSEL, FADD, FMUL, FFMA, FMNMX,
  IMNMX, IABS, MUFU, I2F, F2I, S2R, CS2R, LDC, LDG, STG, RED, LDS, STS, BAR, BRA, EXIT, BSSY, BSYNC, NOP, CALL, RET, HFMA2, SHFL, PRMT, R2UR,
  FCHK, POPC, FLO, BREAK, WARPSYNC, LDL, STL, VOTE, VOTEU, P2R, R2P, I2FP, BMOV, LDGSTS, DEPBAR, YIELD, DADD, DMUL, DFMA, DSETP, F2F, FRND, SGXT, BREV };

static string trim(string s) { size_t a = s.find_first_not_of(" \t"); if (a == string::npos) return ""; size_t b = s.find_last_not_of(" \t\r"); return s.substr(a, b - a + 1); }
static vector<string> splitc(const string &s, char c) { vector<string> r; string t; int depth = 0; for (char ch : s) { if (ch == '[') depth++; if (ch == ']') depth--; if (ch == c && !depth) { r.push_back(t); t.clear(); } else t += ch; } r.push_back(t); return r; }
static i64 hexnum(string s) { bool n = false; s = trim(s); if (s.size() && s[0] == '-') { n = true; s = s.substr(1); } if (s.size() && s[0] == '+') s = s.substr(1); i64 v = (i64)strtoull(s.c_str(), 0, 0); return n ? -v : v; }

struct Program { vector<Inst> code; std::map<string, int> labels; std::map<int, int> at; };

static Operand parse_operand(string t, bool floatop) {
  Operand o; t = trim(t); o.text = t;
  for (;;) {
    size_t r = t.find(".reuse"); if (r != string::npos) { t.erase(r, 6); continue; }
    break;
  }
  string s = t;
  auto strip_sign = [&]() { for (;;) { if (s.size() > 1 && s[0] == '-' && !isdigit(s[1]) && s.substr(0, 4) != "-INF" && s.substr(0,5) != "-QNAN") { o.neg = !o.neg; s = s.substr(1); } else if (s.size() > 1 && s[0] == '~') { o.inv = true; s = s.substr(1); } else if (s.size() > 1 && s[0] == '!') { o.isnot = true; s = s.substr(1); } else if (s[0] == '|') { o.abs = true; s.erase(std::remove(s.begin(), s.end(), '|'), s.end()); } else break; } };
  strip_sign();
  if (s.size() >= 2 && s[0] == '`') { o.kind = LABEL; size_t a = s.find('('); o.text = s.substr(a + 1, s.rfind(')') - a - 1); return o; }
  if (s.substr(0, 2) == "c[") { o.kind = CONST; size_t a = s.find('['), b = s.find(']'); o.bank = (int)hexnum(s.substr(a + 1, b - a - 1)); size_t c = s.find('[', b), d = s.find(']', c); string e = s.substr(c + 1, d - c - 1);
    for (auto &p : splitc(e, '+')) { string q = trim(p); if (q[0] == 'R') { if (q != "RZ") o.ireg = atoi(q.c_str() + 1); } else if (q.substr(0, 2) == "UR") o.ureg = q == "URZ" ? URZ : atoi(q.c_str() + 2); else o.offset += hexnum(q); }
    if (s.find("].64") != string::npos) o.wide = true; return o; }
  if (s.substr(0, 5) == "desc[") { size_t e = s.find(']'); s = s.substr(e + 1); }
  if (s[0] == '[') { o.kind = MEM; string e = s.substr(1, s.find(']') - 1); string cur; vector<string> parts; for (size_t i = 0; i < e.size(); i++) { if ((e[i] == '+' || (e[i] == '-' && i)) && !cur.empty()) { parts.push_back(cur); cur = e[i] == '-' ? "-" : ""; } else if (e[i] != '+') cur += e[i]; } if (!cur.empty()) parts.push_back(cur);
    o.reg = RZ; for (auto &p : parts) { string q = trim(p); if (q.substr(0, 2) == "UR") o.ureg = q.substr(0, 3) == "URZ" ? URZ : atoi(q.c_str() + 2); else if (q[0] == 'R') { if (q.find(".64") != string::npos) o.wide = true; if (q.find(".U32") != string::npos) o.wide = false; string qq = q.substr(0, q.find('.')); size_t xs = q.find(".X"); if (xs != string::npos) o.imm = atoi(q.c_str() + xs + 2); o.reg = qq == "RZ" ? RZ : atoi(qq.c_str() + 1); } else o.offset += hexnum(q); } return o; }
  if (s.substr(0, 3) == "SR_" || s == "SRZ") { o.kind = SPECIAL; o.text = s; return o; }
  if (s.size() > 1 && s[0] == 'B' && isdigit(s[1])) { o.kind = BARRIER; o.reg = atoi(s.c_str() + 1); return o; }
  if (s.substr(0, 2) == "UR") { o.kind = UREG; o.reg = s.substr(0, 3) == "URZ" ? URZ : atoi(s.c_str() + 2); return o; }
  if (s.substr(0, 2) == "UP") { o.kind = UPRED; o.reg = s[2] == 'T' ? PT : s[2] - '0'; return o; }
  if (s[0] == 'P' && s.size() == 2) { o.kind = PRED; o.reg = s[1] == 'T' ? PT : s[1] - '0'; return o; }
  if (s[0] == 'R' && (isdigit(s[1]) || s[1] == 'Z')) { o.kind = REG; if (s.find(".64") != string::npos) o.wide = true; string q = s.substr(0, s.find('.')); o.reg = q == "RZ" ? RZ : atoi(q.c_str() + 1); return o; }
  if (s.find("INF") != string::npos || s.find("NAN") != string::npos) { o.kind = FIMM; o.f = s.find("INF") != string::npos ? (s[0] == '-' ? -INFINITY : INFINITY) : NAN; return o; }
  if (isdigit(s[0]) || s[0] == '-' || s[0] == '+' || s[0] == '.') {
    bool hex = s.find("0x") != string::npos;
    if (!hex && floatop) { o.kind = FIMM; o.f = strtod(s.c_str(), 0); return o; }
    o.kind = IMM; o.imm = (u32)hexnum(s); return o; }
  o.kind = NONE; return o;
}
static Code code_of(const Inst &in) {
  const string &p = in.op;
  static const std::map<string, Code> m = {{"MOV", MOV}, {"UMOV", MOV}, {"IADD3", IADD3}, {"UIADD3", IADD3}, {"LEA", LEA}, {"ULEA", LEA}, {"SHF", SHF}, {"USHF", SHF}, {"LOP3", LOP3}, {"ULOP3", LOP3}, {"PLOP3", PLOP3}, {"UPLOP3", PLOP3}, {"ISETP", ISETP}, {"UISETP", ISETP}, {"FSETP", FSETP}, {"SEL", SEL}, {"USEL", SEL}, {"FSEL", FSEL}, {"FADD", FADD}, {"FMUL", FMUL}, {"FFMA", FFMA}, {"FMNMX", FMNMX}, {"IMNMX", IMNMX}, {"VIMNMX", IMNMX}, {"IABS", IABS}, {"MUFU", MUFU}, {"I2F", I2F}, {"I2FP", I2F}, {"F2I", F2I}, {"S2R", S2R}, {"S2UR", S2R}, {"CS2R", CS2R}, {"LDC", LDC}, {"ULDC", LDC}, {"LDG", LDG}, {"STG", STG}, {"RED", RED}, {"LDS", LDS}, {"STS", STS}, {"BAR", BAR}, {"BRA", BRA}, {"EXIT", EXIT}, {"BSSY", BSSY}, {"BSYNC", BSYNC}, {"NOP", NOP}, {"CALL", CALL}, {"RET", RET}, {"HFMA2", HFMA2}, {"SHFL", SHFL}, {"PRMT", PRMT}, {"R2UR", R2UR}, {"WARPSYNC", NOP}, {"BREAK", BREAK}, {"YIELD", NOP}, {"DEPBAR", NOP}, {"P2R", P2R}, {"UP2UR", P2R}, {"R2P", R2P}, {"UR2UP", R2P}, {"LDGDEPBAR", NOP}, {"LDGSTS", LDGSTS}, {"DADD", DADD}, {"DMUL", DMUL}, {"DFMA", DFMA}, {"DSETP", DSETP}, {"FCHK", FCHK}, {"F2F", F2F}, {"FRND", FRND}, {"LDL", LDL}, {"STL", STL},
    {"VOTE", VOTE}, {"VOTEU", VOTE}, {"POPC", POPC}, {"UPOPC", POPC}, {"FLO", FLO}, {"UFLO", FLO}, {"SGXT", SGXT}, {"USGXT", SGXT}, {"BREV", BREV}, {"UBREV", BREV}, {"MEMBAR", NOP}, {"ERRBAR", NOP}, {"CCTL", NOP}, {"UPRMT", PRMT}, {"ULDC", LDC}};
  if (p == "IMAD" || p == "UIMAD") { if (in.has("WIDE")) return IMADWIDE; if (in.has("HI")) return IMADHI; return IMAD; }
  if (p == "LEA" || p == "ULEA") return in.has("HI") ? LEAHI : LEA;
  auto f = m.find(p); return f == m.end() ? C_NONE : f->second;
}

static std::map<int, vector<unsigned char>> &constant_banks() { static std::map<int, vector<unsigned char>> b; return b; }
static Program load(const string &file, const string &kernel) {
  { std::ifstream f(file); string l; bool on = false; while (std::getline(f, l)) { // literal constants: .nv.constant2.KERNEL
      if (l.find("//----") == 0) { on = l.find(" .nv.constant2." + kernel + " ") != string::npos; continue; }
      if (!on) continue; size_t k; int w = 0; if ((k = l.find(".byte")) != string::npos) w = 1; else if ((k = l.find(".short")) != string::npos) w = 2; else if ((k = l.find(".word")) != string::npos) w = 4; else if ((k = l.find(".dword")) != string::npos) w = 8; if (!w) continue;
      for (auto &q : splitc(l.substr(l.find_first_of(" \t", k)), ',')) { u64 v = (u64)hexnum(q); for (int i = 0; i < w; i++) constant_banks()[2].push_back((unsigned char)(v >> (8 * i))); } } }
  std::ifstream fs(file); if (!fs) die("cannot read " + file);
  Program p; string line; bool in = false; vector<string> pending;
  while (std::getline(fs, line)) {
    size_t d = line.find("//---------------------"); if (d != string::npos) { in = line.find(" .text." + kernel + " ") != string::npos; continue; }
    size_t sct = line.find(".section\t"); if (sct != string::npos && line.find("//") == string::npos) { size_t t = line.find(".text."); in = t != string::npos && line.compare(t + 6, kernel.size(), kernel) == 0 && (line[t + 6 + kernel.size()] == ',' || line[t + 6 + kernel.size()] == '\t'); continue; }
    if (!in) continue;
    string t = trim(line);
    if (t.size() > 1 && t.back() == ':' && t.find("/*") == string::npos) { pending.push_back(t.substr(0, t.size() - 1)); continue; }
    size_t a = t.find("/*"); if (a != 0) continue; size_t b = t.find("*/"); if (b == string::npos) continue;
    string h = t.substr(2, b - 2); if (h.size() > 5 || h.size() < 4 || h.find_first_not_of("0123456789abcdef") != string::npos) continue;
    string body = trim(t.substr(b + 2)); size_t sc = body.find(';'); if (sc == string::npos) continue; body = trim(body.substr(0, sc));
    Inst x; x.pc = (int)strtol(h.c_str(), 0, 16); x.full = body;
    for (auto &l : pending) p.labels[l] = x.pc; pending.clear();
    if (body[0] == '@') { size_t e = body.find(' '); string g = body.substr(1, e - 1); body = trim(body.substr(e)); if (g[0] == '!') { x.pneg = true; g = g.substr(1); } if (g[0] == 'U') { x.upred = true; g = g.substr(1); } x.pred = g[1] == 'T' ? PT : g[1] - '0'; }
    size_t e = body.find(' '); string opc = e == string::npos ? body : body.substr(0, e); auto toks = splitc(opc, '.'); x.op = toks[0]; x.mods.assign(toks.begin() + 1, toks.end());
    bool fl = x.op[0] == 'F' || x.op[0] == 'D' || x.op == "HFMA2" || x.op == "MUFU";
    if (e != string::npos) for (auto &q : splitc(body.substr(e), ',')) { auto oo = parse_operand(q, fl); x.o.push_back(oo); }
    x.code = code_of(x);
    if (x.has("128")) x.width = 16; else if (x.has("64")) x.width = 8; else if (x.has("U8") || x.has("S8")) x.width = 1; else if (x.has("U16") || x.has("S16")) x.width = 2;
    x.uns = x.has("U32") || x.has("U64");
    for (auto &m : x.mods) { static const char *cm[] = {"F", "LT", "EQ", "LE", "GT", "NE", "GE", "T"}; for (int i = 0; i < 8; i++) if (m == cm[i]) x.cmp = i; if (m == "OR") x.boolop = 1; if (m == "XOR") x.boolop = 2; if (m == "EX") x.ex = true; if (m=="LTU") x.cmp=1; if (m=="GEU") x.cmp=6; if (m=="NEU") x.cmp=5; if (m=="GTU") x.cmp=4; if (m=="LEU") x.cmp=3; if (m=="EQU") x.cmp=2; }
    x.X = x.has("X"); x.is_move = x.has("MOV"); x.sat = x.has("SAT"); x.round = x.has("RM") ? FE_DOWNWARD : x.has("RP") ? FE_UPWARD : x.has("RZ") ? FE_TOWARDZERO : FE_TONEAREST;
    for (auto &m : x.mods) if (m.size() == 3 && m[2] == 'U' && m != "MMU") x.unordered = true;
    p.at[x.pc] = (int)p.code.size(); p.code.push_back(x);
  }
  if (p.code.empty()) die("no kernel " + kernel + " in " + file);
  for (auto &l : pending) p.labels[l] = p.code.back().pc + 16;
  for (auto &x : p.code) { for (auto &o : x.o) if (o.kind == LABEL) { auto f = p.labels.find(o.text); if (f != p.labels.end()) x.target = p.at.count(f->second) ? p.at[f->second] : -1; else if (o.text == kernel || o.text == ".text." + kernel) x.target = 0; }
    if ((x.code == BRA || x.code == CALL) && x.target < 0) die("no target: " + x.full); }
  return p;
}

struct Buffer { u64 base; vector<unsigned char> data; string out; bool changed = false; };
enum { LOCAL_BYTES = 8192 };
struct Warp { u32 R[256][32]; u32 P[8]; u32 UR[64]; u32 UP; u32 exited, blocked; int pc[32]; u32 bar[16]; u32 wait[16]; bool atbar; vector<unsigned char> local; };

static vector<Buffer> buffers; static vector<unsigned char> shared; static unsigned char cbank[65536]; static std::map<int, vector<unsigned char>> banks;
static u32 bdim[3], gdim[3];
static unsigned char *gptr(u64 a, int w, const Inst &x, bool store = false) {
  static Buffer *last = nullptr;
  if (a % w) { char m[256]; snprintf(m, 256, "address %llx is not aligned: %04x %s", (unsigned long long)a, x.pc, x.full.c_str()); die(m); }
  if (!last || a < last->base || a + w > last->base + last->data.size()) { last = nullptr; for (auto &b : buffers) if (a >= b.base && a + w <= b.base + b.data.size()) last = &b; }
  if (!last) { char m[256]; snprintf(m, 256, "address %llx is outside of all memory: %04x %s", (unsigned long long)a, x.pc, x.full.c_str()); die(m); }
  if (store) last->changed = true;
  return &last->data[a - last->base]; }
static u64 asu(double f) { u64 v; memcpy(&v, &f, 8); return v; }
static double asd(u64 v) { double f; memcpy(&f, &v, 8); return f; }
// what a load of less than a word leaves in its register
static u32 narrow(const unsigned char *q, const Inst &x) { u32 v = 0; memcpy(&v, q, x.width); return x.has("S8") ? (u32)(i32)(signed char)v : x.has("S16") ? (u32)(i32)(short)v : v; }
static float asf(u32 v) { float f; memcpy(&f, &v, 4); return f; }
static u32 asu(float f) { u32 v; memcpy(&v, &f, 4); return v; }
static u32 half_bits(double d) { // exact small constants only
  float f = (float)d; u32 b = asu(f); u32 s = (b >> 16) & 0x8000; int e = (int)((b >> 23) & 255) - 127 + 15; u32 m = b & 0x7fffff; if (f == 0) return s; if (e <= 0) { if (e < -10) return s; m |= 0x800000; return s | (m >> (14 - e)); } return s | (u32)(e << 10) | (m >> 13); }
static bool cmpi(int c, bool u, u32 a, u32 b) { switch (c) { case 0: return false; case 1: return u ? a < b : (i32)a < (i32)b; case 2: return a == b; case 3: return u ? a <= b : (i32)a <= (i32)b; case 4: return u ? a > b : (i32)a > (i32)b; case 5: return a != b; case 6: return u ? a >= b : (i32)a >= (i32)b; } return true; }

static u32 cword(int bank, i64 off) { u32 v = 0; if (bank == 0) { if (off + 4 <= (i64)sizeof cbank) memcpy(&v, cbank + off, 4); } else { auto &b = banks[bank]; if (off + 4 <= (i64)b.size()) memcpy(&v, &b[off], 4); else die("constant bank " + std::to_string(bank)); } return v; }

struct Sim {
  Program &p; u64 total = 0, laneops = 0; u32 ctaid[3];
  std::map<string, u64> mix; u64 gld_sec = 0, gld_new = 0, gst_sec = 0, gld_req = 0, gst_req = 0, sld_wf = 0, sst_wf = 0, sld_req = 0, sst_req = 0, bars = 0, local_req = 0;
  Sim(Program &p) : p(p) {}
  // value of a 32-bit source in one lane
  inline u32 raw(const Warp &w, const Operand &o, int l, int word = 0) const {
    switch (o.kind) {
      case REG: return o.reg == RZ ? 0 : w.R[o.reg + word][l];
      case UREG: return o.reg == URZ ? 0 : w.UR[o.reg + word];
      case IMM: return word ? ((i32)o.imm < 0 ? ~0u : 0) : o.imm;
      case FIMM: return asu((float)o.f);
      case CONST: { i64 a = o.offset + 4 * word; if (o.ureg != URZ) a += w.UR[o.ureg]; if (o.ireg != RZ) a += (i32)w.R[o.ireg][l]; return cword(o.bank, a); }
      default: return 0; } }
  inline u32 val(const Warp &w, const Operand &o, int l) const { u32 v = raw(w, o, l); if (o.abs) v = (i32)v < 0 ? 0u - v : v; if (o.inv) v = ~v; if (o.neg) v = 0u - v; return v; }
  inline float fval(const Warp &w, const Operand &o, int l) const { float f = asf(raw(w, o, l)); if (o.abs) f = fabsf(f); if (o.neg) f = -f; return f; }
  inline double dval(const Warp &w, const Operand &o, int l) const {
    double d = o.kind == FIMM ? o.f : o.kind == IMM ? asd((u64)o.imm << 32) : asd((u64)raw(w, o, l) | (u64)raw(w, o, l, 1) << 32);
    if (o.abs) d = fabs(d); return o.neg ? -d : d; }
  inline void setd(Warp &w, const Operand &o, int l, double d) { u64 v = asu(d); setr(w, o, l, (u32)v); setr(w, o, l, (u32)(v >> 32), 1); }
  static inline float saturated(float f) { return f > 0 ? f < 1 ? f : 1.0f : 0.0f; }
  // A source in all lanes at once: registers as they lie, others spread over `room`.
  inline const u32 *row(const Warp &w, const Operand &o, u32 *room, bool floating) const {
    static const u32 zeros[32] = {};
    const u32 *from = zeros;
    if (o.kind == REG) { if (o.reg != RZ) from = w.R[o.reg]; }
    else if (o.kind == CONST && o.ireg != RZ) { for (int l = 0; l < 32; l++) room[l] = raw(w, o, l); from = room; }
    else { u32 v = raw(w, o, 0); for (int l = 0; l < 32; l++) room[l] = v; from = room; }
    if (floating) { if (!o.neg && !o.abs) return from; u32 keep = o.abs ? 0x7fffffffu : ~0u, flip = o.neg ? 0x80000000u : 0; for (int l = 0; l < 32; l++) room[l] = (from[l] & keep) ^ flip; return room; }
    if (o.abs) { for (int l = 0; l < 32; l++) room[l] = val(w, o, l); return room; }
    if (!o.neg && !o.inv) return from;
    u32 flip = o.neg != o.inv ? ~0u : 0, add = o.neg ? 1 : 0; for (int l = 0; l < 32; l++) room[l] = (from[l] ^ flip) + add; return room; }
  inline void put(Warp &w, const Operand &o, u32 ex, const u32 *v) {
    if (o.kind == UREG) { if (o.reg != URZ && ex) w.UR[o.reg] = v[__builtin_ctz(ex)]; return; }
    if (o.reg == RZ) return;
    u32 *to = w.R[o.reg]; if (ex == ~0u) memcpy(to, v, 128); else for (int l = 0; l < 32; l++) to[l] = ex >> l & 1 ? v[l] : to[l]; }
  // fp32 arithmetic in all lanes; the rounding mode is that of the instruction
  void arithmetic(Warp &w, const Inst &x, u32 ex) {
    u32 r1[32], r2[32], r3[32], r[32]; const float *a = (const float *)row(w, x.o[1], r1, true), *b = (const float *)row(w, x.o[2], r2, true), *c = x.code == FFMA ? (const float *)row(w, x.o[3], r3, true) : nullptr;
    float *f = (float *)r;
    if (x.round == FE_TONEAREST) {
      if (x.code == FADD) for (int l = 0; l < 32; l++) f[l] = a[l] + b[l];
      else if (x.code == FMUL) for (int l = 0; l < 32; l++) f[l] = a[l] * b[l];
      else for (int l = 0; l < 32; l++) f[l] = fmaf(a[l], b[l], c[l]);
    } else {
      fesetround(x.round);
      for (int l = 0; l < 32; l++) { volatile float p = a[l], q = b[l], s = c ? c[l] : 0, t; if (x.code == FADD) t = p + q; else if (x.code == FMUL) t = p * q; else t = fmaf(p, q, s); f[l] = t; }
      fesetround(FE_TONEAREST);
    }
    if (x.sat) for (int l = 0; l < 32; l++) f[l] = saturated(f[l]);
    put(w, x.o[0], ex, r); }
  inline bool pval(const Warp &w, const Operand &o, int l) const { bool b = o.reg == PT ? true : o.kind == UPRED ? (w.UP >> o.reg) & 1 : (w.P[o.reg] >> l) & 1; return b ^ o.isnot; }
  inline void setp(Warp &w, const Operand &o, int l, bool v) { if (o.reg == PT) return; if (o.kind == UPRED) { w.UP = (w.UP & ~(1u << o.reg)) | (u32(v) << o.reg); } else w.P[o.reg] = (w.P[o.reg] & ~(1u << l)) | (u32(v) << l); }
  inline void setr(Warp &w, const Operand &o, int l, u32 v, int word = 0) { if (o.kind == UREG) { if (o.reg != URZ) w.UR[o.reg + word] = v; } else if (o.kind == REG) { if (o.reg != RZ) w.R[o.reg + word][l] = v; } else die("bad destination " + o.text); }

  std::unordered_set<u64> held;  // the sectors that the block has loaded so far
  int sectors_of(const u64 *a, u32 mask, int width, bool load) { u64 s[160]; int n = 0; for (int l = 0; l < 32; l++) if (mask >> l & 1) { for (u64 q = a[l] >> 5; q <= (a[l] + width - 1) >> 5; q++) s[n++] = q; } std::sort(s, s + n); n = (int)(std::unique(s, s + n) - s); if (load) for (int i = 0; i < n; i++) gld_new += held.insert(s[i]).second; return n; }
  // shared memory: 4-byte accesses one pass of 32 lanes, 8-byte two, 16-byte four; wavefronts of a pass: most different words in a bank
  static int wavefronts_of(const u64 *a, u32 mask, int width) { int per = width <= 4 ? 32 : width == 8 ? 16 : 8, total = 0; for (int g = 0; g < 32; g += per) { u64 words[32 * 4]; int n = 0; for (int l = g; l < g + per; l++) if (mask >> l & 1) for (int k = 0; k < std::max(1, width / 4); k++) words[n++] = (a[l] >> 2) + k; std::sort(words, words + n); n = (int)(std::unique(words, words + n) - words); int bank[32] = {0}, m = 0; for (int i = 0; i < n; i++) m = std::max(m, ++bank[words[i] & 31]); total += m; } return std::max(total, mask ? 1 : 0); }

  // runs the warp until it ends or reaches a barrier
  void run(Warp &w, int warp_in_block) {
    for (;;) {
      u32 live = ~w.exited & ~w.blocked;
      if (!live) { if (w.exited == ~0u) return; // all others blocked at BSYNC: release any whose group is complete
        bool freed = false; for (int b = 0; b < 16; b++) if (w.wait[b] && ((w.bar[b] & ~w.exited) & ~w.wait[b]) == 0) { w.blocked &= ~w.wait[b]; for (int l = 0; l < 32; l++) if (w.wait[b] >> l & 1) w.pc[l]++; w.wait[b] = 0; freed = true; break; }
        if (!freed) die("a warp waits at BSYNC for ever"); continue; }
      int pc = 1 << 30; for (int l = 0; l < 32; l++) if (live >> l & 1) pc = std::min(pc, w.pc[l]);
      u32 act = 0; for (int l = 0; l < 32; l++) if ((live >> l & 1) && w.pc[l] == pc) act |= 1u << l;
      Inst &x = p.code[pc]; u32 pm = x.upred ? ((x.pred == PT || (w.UP >> x.pred & 1)) ? ~0u : 0) : (x.pred == PT ? ~0u : w.P[x.pred]); if (x.pneg) pm = ~pm; u32 ex = act & pm;
      x.count++; total++; laneops += __builtin_popcount(ex); x.lanes += __builtin_popcount(ex);
      auto &o = x.o; u64 addr[32]; bool advance = true; int uni = x.op[0] == 'U' || x.code == R2UR || x.op == "S2UR";
      u32 lanes = ex; if (uni && ex) lanes = ex & (0u - ex); // uniform data path: once
      #define EACH for (u32 mm = lanes, l = 0; mm && (l = __builtin_ctz(mm), true); mm &= mm - 1)
      switch (x.code) {
        case NOP: break;
        case MOV: { u32 room[32]; put(w, o[0], ex, row(w, o[1], room, false)); break; }
        case IMAD: { if (x.is_move) { u32 room[32]; put(w, o[0], ex, row(w, o[3], room, false)); break; }
          if (!x.X && o[1].kind != PRED && o[1].kind != UPRED && !uni) { u32 r1[32], r2[32], r3[32], r[32]; const u32 *a = row(w, o[1], r1, false), *b = row(w, o[2], r2, false), *c = row(w, o[3], r3, false); for (int l = 0; l < 32; l++) r[l] = a[l] * b[l] + c[l]; put(w, o[0], ex, r); break; }
          int k = 1; bool cy = o[1].kind == PRED; if (cy) k = 2; bool X = x.has("X"); EACH { u32 r; if (x.has("MOV")) r = val(w, o[3], l); else { u32 a = raw(w, o[k], l), b = raw(w, o[k + 1], l); if (o[k].neg) a = 0u - a; if (o[k + 1].neg) b = 0u - b; r = a * b; u32 c = raw(w, o[k + 2], l); if (o[k + 2].inv) c = ~c; if (o[k + 2].neg) c = 0u - c; r += c; if (X) r += pval(w, o[k + 3], l); } setr(w, o[0], l, r); } break; }
        case IMADHI: EACH { u64 c = 0; if (o[3].kind == REG && o[3].reg != RZ) c = (u64)raw(w, o[3], l) | (u64)w.R[o[3].reg + 1][l] << 32; else if (o[3].kind != REG) c = raw(w, o[3], l); u32 a = val(w, o[1], l), b = val(w, o[2], l); u64 m = x.uns ? (u64)a * b : (u64)((i64)(i32)a * (i32)b); setr(w, o[0], l, (u32)((m + c) >> 32)); } break;
        case IMADWIDE: { bool cy = o[1].kind == PRED || o[1].kind == UPRED; int k = cy ? 2 : 1; EACH { u32 a = raw(w, o[k], l), b = raw(w, o[k + 1], l); u64 m = x.uns ? (u64)a * b : (u64)((i64)(i32)a * (i32)b); if (o[k].neg != o[k + 1].neg) m = 0 - m; u64 c = 0; const Operand &co = o[k + 2]; if ((co.kind == REG && co.reg != RZ) || co.kind == UREG || co.kind == CONST) { if (!(co.kind == UREG && co.reg == URZ)) c = (u64)raw(w, co, l) | (u64)raw(w, co, l, 1) << 32; } else if (co.kind == IMM) c = (u64)(i64)(i32)co.imm; if (co.neg) c = 0 - c; unsigned __int128 s = (unsigned __int128)m + c; if (x.has("X")) s += pval(w, o[k + 3], l); setr(w, o[0], l, (u32)s); setr(w, o[0], l, (u32)((u64)s >> 32), 1); if (cy) setp(w, o[1], l, (bool)(s >> 64)); } break; }
        case IADD3: { if (!x.X && !uni && o[1].kind != PRED && o[1].kind != UPRED) { u32 r1[32], r2[32], r3[32], r[32]; const u32 *a = row(w, o[1], r1, false), *b = row(w, o[2], r2, false), *c = row(w, o[3], r3, false); for (int l = 0; l < 32; l++) r[l] = a[l] + b[l] + c[l]; put(w, o[0], ex, r); break; }
          int k = 1; while (o[k].kind == PRED || o[k].kind == UPRED) k++; bool X = x.has("X"); EACH { u64 s = 0; for (int i = k; i < k + 3; i++) { u32 r = raw(w, o[i], l); if (o[i].neg) s += (u64)(u32)~r + 1; else if (o[i].inv) s += (u32)~r; else s += r; } if (X) for (size_t i = k + 3; i < o.size(); i++) s += pval(w, o[i], l); if (k > 1) setp(w, o[1], l, (s >> 32) >= 1); if (k > 2) setp(w, o[2], l, (s >> 32) >= 2); setr(w, o[0], l, (u32)s); } break; }
        case LEA: { int k = o[1].kind == PRED || o[1].kind == UPRED ? 2 : 1; EACH { u32 sh = o[k + 2].imm & 31; u32 a = raw(w, o[k], l) << sh; u64 s = o[k].neg ? (u64)(u32)~a + 1 : (u64)a; u32 b = raw(w, o[k + 1], l); s += o[k + 1].neg ? (u64)(u32)~b + 1 : (o[k+1].inv ? (u32)~b : b); if (x.has("X")) s += pval(w, o[k + 3], l); if (k == 2) setp(w, o[1], l, s >> 32); setr(w, o[0], l, (u32)s); } break; }
        case LEAHI: { int k = o[1].kind == PRED || o[1].kind == UPRED ? 2 : 1; bool sx = x.has("SX32"), X = x.has("X"); EACH { u32 a = raw(w, o[k], l), b = val(w, o[k + 1], l); u64 wide; int j; if (sx) { wide = (u64)(i64)(i32)a; j = k + 2; } else { wide = (u64)a | (u64)raw(w, o[k + 2], l) << 32; j = k + 3; } u32 sh = o[j].imm & 31; if (o[k].neg) wide = 0 - wide; u32 r = (u32)((wide << sh) >> 32); u64 s = (u64)r + b; if (X) s += pval(w, o[j + 1], l); if (k == 2) setp(w, o[1], l, s >> 32); setr(w, o[0], l, (u32)s); } break; }
        case SHF: { bool left = x.has("L"), hi = x.has("HI"), s32 = x.has("S32"), u64b = x.has("U64"), s64 = x.has("S64"), W = x.has("W"); EACH { u32 a = raw(w, o[1], l), sh = raw(w, o[2], l), c = raw(w, o[3], l); u32 r; int lim = (u64b || s64) ? 64 : 32; if (W) sh &= lim - 1; else if (sh > (u32)lim) sh = lim; u64 v = (u64)a | (u64)c << 32;
            if (left) { if (hi) r = sh >= 64 ? 0 : (u32)((v << sh) >> 32); else r = sh >= 32 ? 0 : a << sh; if (!hi && W) r = (u32)(((v << (sh & 31)) >> 32)); }
            else { if (hi) { if (s32 || s64) r = (u32)((i32)c >> (sh > 31 ? 31 : sh)); else r = sh >= 32 ? 0 : c >> sh; } else { if (s64) r = (u32)((i64)v >> (sh > 63 ? 63 : sh)); else r = sh >= 64 ? 0 : (u32)(v >> sh); } }
            setr(w, o[0], l, r); } break; }
        case LOP3: { bool pd = o[0].kind == PRED || o[0].kind == UPRED; int k = pd ? 1 : 0; EACH { u32 a = val(w, o[k + 1], l), b = val(w, o[k + 2], l), c = val(w, o[k + 3], l), lut = o[k + 4].imm, r = 0; if (lut & 1) r |= ~a & ~b & ~c; if (lut & 2) r |= ~a & ~b & c; if (lut & 4) r |= ~a & b & ~c; if (lut & 8) r |= ~a & b & c; if (lut & 16) r |= a & ~b & ~c; if (lut & 32) r |= a & ~b & c; if (lut & 64) r |= a & b & ~c; if (lut & 128) r |= a & b & c; if (pd) { bool q = r != 0; if (x.boolop==0 && (int)o.size() > k + 5) q = q || pval(w, o[k + 5], l); setp(w, o[0], l, q); } if (!(o[k].kind == REG && o[k].reg == RZ)) setr(w, o[k], l, r); } break; }
        case PLOP3: EACH { int idx = pval(w, o[2], l) << 2 | pval(w, o[3], l) << 1 | pval(w, o[4], l); bool r1 = o[5].imm >> idx & 1, r2 = o[6].imm >> idx & 1; setp(w, o[0], l, r1); setp(w, o[1], l, r2); } break;
        case ISETP: EACH { u32 a = val(w, o[2], l), b = val(w, o[3], l); bool r = cmpi(x.cmp, x.uns, a, b); if (x.ex) { bool lo = pval(w, o[5], l); switch (x.cmp) { case 1: case 3: r = cmpi(1, x.uns, a, b) || (a == b && lo); break; case 4: case 6: r = cmpi(4, x.uns, a, b) || (a == b && lo); break; case 2: r = a == b && lo; break; case 5: r = a != b || lo; break; } } bool q = pval(w, o[4], l); bool r1 = x.boolop == 1 ? r || q : x.boolop == 2 ? r != q : r && q, r2 = x.boolop == 1 ? !r || q : x.boolop == 2 ? (!r) != q : !r && q; setp(w, o[0], l, r1); setp(w, o[1], l, r2); } break;
        case FSETP: case DSETP: EACH { double a = x.code == FSETP ? fval(w, o[2], l) : dval(w, o[2], l), b = x.code == FSETP ? fval(w, o[3], l) : dval(w, o[3], l); bool nan = a != a || b != b, r = false; if (x.has("NAN")) r = nan; else if (x.has("NUM")) r = !nan; else if (nan) r = x.unordered; else switch (x.cmp) { case 1: r = a < b; break; case 2: r = a == b; break; case 3: r = a <= b; break; case 4: r = a > b; break; case 5: r = a != b; break; case 6: r = a >= b; break; default: die("not implemented: " + x.full); } bool q = pval(w, o[4], l); setp(w, o[0], l, x.boolop == 1 ? r || q : x.boolop == 2 ? r != q : r && q); setp(w, o[1], l, x.boolop == 1 ? !r || q : x.boolop == 2 ? (!r) != q : !r && q); } break;
        case SEL: EACH setr(w, o[0], l, pval(w, o[3], l) ? val(w, o[1], l) : val(w, o[2], l)); break;
        case FSEL: EACH setr(w, o[0], l, pval(w, o[3], l) ? asu(fval(w, o[1], l)) : asu(fval(w, o[2], l))); break;
        case FADD: case FMUL: case FFMA: if (x.o[0].kind != REG) die(x.full); arithmetic(w, x, ex); break;
        case DADD: EACH { fesetround(x.round); volatile double a = dval(w, o[1], l), b = dval(w, o[2], l), r = a + b; setd(w, o[0], l, r); } fesetround(FE_TONEAREST); break;
        case DMUL: EACH { fesetround(x.round); volatile double a = dval(w, o[1], l), b = dval(w, o[2], l), r = a * b; setd(w, o[0], l, r); } fesetround(FE_TONEAREST); break;
        case DFMA: EACH { fesetround(x.round); volatile double a = dval(w, o[1], l), b = dval(w, o[2], l), c = dval(w, o[3], l), r = fma(a, b, c); setd(w, o[0], l, r); } fesetround(FE_TONEAREST); break;
        // whether a division needs its long way; what the hardware asks at the borders is not known, results are the same
        case FCHK: EACH { int a = (int)(asu(fval(w, o[1], l)) >> 23 & 255), b = (int)(asu(fval(w, o[2], l)) >> 23 & 255); setp(w, o[0], l, a == 255 || b == 255 || b == 0 || b > 252 || a - b > 125 || a - b < -125 || (a < 25 && fval(w, o[1], l) != 0)); } break;
        case F2F: EACH { if (x.mods.size() >= 2 && x.mods[0] == "F64" && x.mods[1] == "F32") setd(w, o[0], l, (double)fval(w, o[1], l)); else if (x.mods.size() >= 2 && x.mods[0] == "F32" && x.mods[1] == "F64") { fesetround(x.round); volatile double a = dval(w, o[1], l); volatile float r = (float)a; setr(w, o[0], l, asu((float)r)); fesetround(FE_TONEAREST); } else die("not implemented: " + x.full); } break;
        case FRND: EACH { auto rounded = [&](double d) { return x.has("TRUNC") ? trunc(d) : x.has("FLOOR") ? floor(d) : x.has("CEIL") ? ceil(d) : nearbyint(d); }; if (x.has("F64")) setd(w, o[0], l, rounded(dval(w, o[1], l))); else setr(w, o[0], l, asu((float)rounded(fval(w, o[1], l)))); } break;
        case POPC: EACH setr(w, o[0], l, (u32)__builtin_popcount(val(w, o[1], l))); break;
        case BREV: EACH { u32 v = val(w, o[1], l), r = 0; for (int i = 0; i < 32; i++) r |= (v >> i & 1) << (31 - i); setr(w, o[0], l, r); } break;
        case FLO: EACH { u32 v = val(w, o[o.size() - 1], l); if (!x.uns && (i32)v < 0) v = ~v; u32 r = v ? 31 - __builtin_clz(v) : ~0u; if (x.has("SH") && v) r = 31 - r; setr(w, o[0], l, r); } break;
        case SGXT: EACH { u32 v = val(w, o[1], l), n = val(w, o[2], l); if (n < 32) { v &= (1u << n) - 1; if (!x.uns && n && v >> (n - 1) & 1) v |= ~0u << n; } setr(w, o[0], l, v); } break;
        case VOTE: { int k = o[0].kind == REG || o[0].kind == UREG ? 1 : 0; u32 ballot = 0; for (int l = 0; l < 32; l++) if (ex >> l & 1 && pval(w, o[k + 1], l)) ballot |= 1u << l; bool r = x.has("ALL") ? ballot == ex : x.has("EQ") ? ballot == ex || !ballot : ballot != 0; EACH { if (k) setr(w, o[0], l, ballot); setp(w, o[k], l, r); } break; }
        case FMNMX: EACH { float a = fval(w, o[1], l), b = fval(w, o[2], l); setr(w, o[0], l, asu(pval(w, o[3], l) ? fminf(a, b) : fmaxf(a, b))); } break;
        case IMNMX: EACH { u32 a = val(w, o[1], l), b = val(w, o[2], l); bool mn = pval(w, o[3], l); bool lt = x.uns ? a < b : (i32)a < (i32)b; setr(w, o[0], l, mn == lt ? a : b); } break;
        case IABS: EACH { i32 a = (i32)val(w, o[1], l); setr(w, o[0], l, (u32)(a < 0 ? -a : a)); } break;
        case MUFU: EACH {
          if (x.has("RCP64H") || x.has("RSQ64H")) { double a = asd((u64)raw(w, o[1], l) << 32); if (o[1].abs) a = fabs(a); if (o[1].neg) a = -a; setr(w, o[0], l, (u32)(asu(x.has("RCP64H") ? 1.0 / a : 1.0 / sqrt(a)) >> 32)); continue; }
          float a = fval(w, o[1], l), r; if (x.has("RCP")) r = 1.0f / a; else if (x.has("RSQ")) r = (float)(1.0 / sqrt((double)a)); else if (x.has("SQRT")) r = sqrtf(a); else if (x.has("EX2")) r = (float)exp2((double)a); else if (x.has("LG2")) r = (float)log2((double)a); else if (x.has("SIN")) r = (float)sin(6.283185307179586 * a); else if (x.has("COS")) r = (float)cos(6.283185307179586 * a); else if (x.has("TANH")) r = (float)tanh((double)a); else die("not implemented: " + x.full); setr(w, o[0], l, asu(r)); } break;
        case I2F: EACH { u32 a = val(w, o[1], l); if (o[1].text.find(".B") != string::npos || o[1].text.find(".H") != string::npos) die("not implemented: " + x.full); long double d; if (x.has("U64")) d = (long double)((u64)raw(w, o[1], l) | (u64)raw(w, o[1], l, 1) << 32); else if (x.has("S64")) d = (long double)(i64)((u64)raw(w, o[1], l) | (u64)raw(w, o[1], l, 1) << 32); else if (x.has("U8")) d = (unsigned char)a; else if (x.has("S8")) d = (signed char)a; else if (x.has("U16")) d = (unsigned short)a; else if (x.has("S16")) d = (short)a; else d = x.uns ? (long double)a : (long double)(i32)a;
          fesetround(x.round); volatile long double v = d; if (x.has("F64")) { volatile double r = (double)v; fesetround(FE_TONEAREST); setd(w, o[0], l, r); } else { volatile float r = (float)v; fesetround(FE_TONEAREST); setr(w, o[0], l, asu((float)r)); } } break;
        case F2I: EACH { double a = x.has("F64") ? dval(w, o[1], l) : fval(w, o[1], l); a = x.has("TRUNC") ? trunc(a) : x.has("FLOOR") ? floor(a) : x.has("CEIL") ? ceil(a) : nearbyint(a);
          if (x.has("U64")) { u64 v = !(a > 0) ? 0 : a >= 18446744073709551616.0 ? ~0ull : (u64)a; setr(w, o[0], l, (u32)v); setr(w, o[0], l, (u32)(v >> 32), 1); }
          else if (x.has("S64")) { i64 v = a != a ? INT64_MIN : a >= 9223372036854775808.0 ? INT64_MAX : a <= -9223372036854775808.0 ? INT64_MIN : (i64)a; setr(w, o[0], l, (u32)v); setr(w, o[0], l, (u32)((u64)v >> 32), 1); }
          else if (x.has("U8") || x.has("S8") || x.has("U16") || x.has("S16")) die("not implemented: " + x.full);
          else if (x.uns) setr(w, o[0], l, !(a > 0) ? 0 : a >= 4294967296.0 ? ~0u : (u32)a); else setr(w, o[0], l, a != a ? 0 : a >= 2147483648.0 ? 0x7fffffffu : a <= -2147483648.0 ? 0x80000000u : (u32)(i32)a); } break;
        case S2R: EACH { const string &s = o[1].text; u32 lin = warp_in_block * 32 + l, v = 0; u32 tx = lin % bdim[0], ty = lin / bdim[0] % bdim[1], tz = lin / (bdim[0] * bdim[1]); if (s == "SR_TID.X") v = tx; else if (s == "SR_TID.Y") v = ty; else if (s == "SR_TID.Z") v = tz; else if (s == "SR_CTAID.X") v = ctaid[0]; else if (s == "SR_CTAID.Y") v = ctaid[1]; else if (s == "SR_CTAID.Z") v = ctaid[2]; else if (s == "SR_LANEID") v = l; else die("special register " + s); setr(w, o[0], l, v); } break;
        case CS2R: EACH { setr(w, o[0], l, 0); if (!x.has("32")) setr(w, o[0], l, 0, 1); } break;
        case LDC: EACH { setr(w, o[0], l, raw(w, o[1], l)); if (x.width == 8) setr(w, o[0], l, raw(w, o[1], l, 1), 1); } break;
        case HFMA2: { if (!(o[1].reg == RZ && o[2].reg == RZ) || o.size() < 5) die("HFMA2 other than a move: " + x.full); u32 v = half_bits(o[3].f) << 16 | half_bits(o[4].f); EACH setr(w, o[0], l, v); break; }
        case P2R: { int sh = x.has("B1") ? 8 : x.has("B2") ? 16 : x.has("B3") ? 24 : 0; EACH { u32 pr = 0; for (int i = 0; i < 7; i++) pr |= (uni ? w.UP >> i & 1 : w.P[i] >> l & 1) << i; u32 m = raw(w, o[3], l); setr(w, o[0], l, (raw(w, o[2], l) & ~(m << sh)) | ((pr & m) << sh)); } break; }
        case R2P: { int sh = x.has("B1") ? 8 : x.has("B2") ? 16 : x.has("B3") ? 24 : 0; EACH { u32 v = raw(w, o[1], l) >> sh, m = raw(w, o[2], l); for (int i = 0; i < 7; i++) if (m >> i & 1) { if (uni) w.UP = (w.UP & ~(1u << i)) | ((v >> i & 1) << i); else w.P[i] = (w.P[i] & ~(1u << l)) | ((v >> i & 1) << l); } } break; }
        case R2UR: EACH setr(w, o[0], l, val(w, o[1], l)); break;
        case PRMT: EACH { u32 a = raw(w, o[1], l), s = raw(w, o[2], l), b = raw(w, o[3], l); u64 v = (u64)a | (u64)b << 32; u32 r = 0; for (int i = 0; i < 4; i++) { u32 n = s >> (4 * i) & 15; u32 by = (u32)(v >> (8 * (n & 7))) & 255; if (n & 8) by = by & 128 ? 255 : 0; r |= by << (8 * i); } setr(w, o[0], l, r); } break;
        case SHFL: { u32 tmp[32], pv = 0; EACH { u32 b = val(w, o[3], l) & 31, c = val(w, o[4], l); int mx = c & 31, sg = c >> 8 & 31; int mn = l & sg; int hi = mn | (mx & ~sg); int j = l; if (x.has("DOWN")) j = l + b; else if (x.has("UP")) j = (int)l - (int)b; else if (x.has("BFLY")) j = l ^ b; else if (x.has("IDX")) j = mn | (b & ~sg); bool ok = x.has("UP") ? j >= hi : j <= hi; if (!ok) j = l; tmp[l] = raw(w, o[2], j); if (ok) pv |= 1u << l; } EACH { setr(w, o[1], l, tmp[l]); if (o[0].reg != PT) setp(w, o[0], l, pv >> l & 1); } break; }
        case LDG: { const Operand *m = 0; int di = -1; for (size_t i = 0; i < o.size(); i++) { if (o[i].kind == MEM) m = &o[i]; else if (o[i].kind == REG && di < 0) di = (int)i; }
          for (int l = 0; l < 32; l++) addr[l] = 0; EACH { u64 a = m->reg == RZ ? 0 : (u64)w.R[m->reg][l]; if (m->wide && m->reg != RZ) a |= (u64)w.R[m->reg + 1][l] << 32; if (m->ureg != URZ) a += (u64)w.UR[m->ureg] | (u64)w.UR[m->ureg + 1] << 32; a += m->offset; addr[l] = a; unsigned char *q = gptr(a, x.width, x); if (x.width >= 4) for (int k = 0; k < x.width / 4; k++) { u32 v; memcpy(&v, q + 4 * k, 4); setr(w, o[di], l, v, k); } else setr(w, o[di], l, narrow(q, x)); }
          if (ex) { int s = sectors_of(addr, ex, x.width, true); gld_sec += s; gld_req++; x.sectors += s; } break; }
        case RED: if (!x.has("ADD") || !x.has("F32")) die("not implemented: " + x.full); [[fallthrough]];
        case STG: { const Operand &m = o[0], &v = o[1]; for (int l = 0; l < 32; l++) addr[l] = 0; EACH { u64 a = m.reg == RZ ? 0 : (u64)w.R[m.reg][l]; if (m.wide && m.reg != RZ) a |= (u64)w.R[m.reg + 1][l] << 32; if (m.ureg != URZ) a += (u64)w.UR[m.ureg] | (u64)w.UR[m.ureg + 1] << 32; a += m.offset; addr[l] = a; unsigned char *q = gptr(a, x.width, x, true); for (int k = 0; k < std::max(1, x.width / 4); k++) { u32 t = raw(w, v, l, k); if (x.code == RED) { float sum, one; memcpy(&sum, q, 4); memcpy(&one, &t, 4); sum += one; memcpy(&t, &sum, 4); } memcpy(q + 4 * k, &t, std::min(4, x.width)); } }
          if (ex) { int s = sectors_of(addr, ex, x.width, false); gst_sec += s; gst_req++; x.sectors += s; } break; }
        case LDS: case STS: { int mi = x.code == LDS ? 1 : 0; const Operand &m = o[mi]; for (int l = 0; l < 32; l++) addr[l] = 0; EACH { u32 a = m.reg == RZ ? 0 : w.R[m.reg][l]; if (m.imm) a *= m.imm; if (m.ureg != URZ) a += w.UR[m.ureg]; a += (u32)m.offset; addr[l] = a; if (a + x.width > shared.size()) die("shared address " + std::to_string(a) + " of " + std::to_string(shared.size()) + ": " + x.full); if (a % x.width) die("shared address " + std::to_string(a) + " is not aligned: " + x.full); unsigned char *q = &shared[a]; for (int k = 0; k < std::max(1, x.width / 4); k++) { if (x.code == LDS) { u32 v = 0; if (x.width < 4) v = narrow(q, x); else memcpy(&v, q + 4 * k, 4); setr(w, o[0], l, v, k); } else { u32 v = raw(w, o[1], l, k); memcpy(q + 4 * k, &v, std::min(4, x.width)); } } }
          if (ex) { int f = wavefronts_of(addr, ex, x.width); x.wavefronts += f; if (x.code == LDS) sld_wf += f, sld_req++; else sst_wf += f, sst_req++; } 
          for (int l = 0; l < 32; l++) addr[l] += 0x7f0000000000ull; break; }
        case LDL: case STL: { const Operand &m = o[x.code == LDL ? 1 : 0]; EACH { u32 a = (m.reg == RZ ? 0 : w.R[m.reg][l]) + (u32)m.offset; if (a + x.width > LOCAL_BYTES) die("local address " + std::to_string(a) + ": " + x.full); unsigned char *q = &w.local[l * LOCAL_BYTES + a]; for (int k = 0; k < std::max(1, x.width / 4); k++) if (x.code == LDL) { u32 v = 0; if (x.width < 4) v = narrow(q, x); else memcpy(&v, q + 4 * k, 4); setr(w, o[0], l, v, k); } else { u32 v = raw(w, o[1], l, k); memcpy(q + 4 * k, &v, std::min(4, x.width)); } } if (ex) local_req++; break; }
        case LDGSTS: { const Operand &s = o[0], &g = o[1]; u64 from[32] = {}; for (int l = 0; l < 32; l++) addr[l] = 0; bool zero = o.size() > 2 && o[2].kind == PRED;
          EACH { u32 a = (s.reg == RZ ? 0 : w.R[s.reg][l]) + (s.ureg != URZ ? w.UR[s.ureg] : 0) + (u32)s.offset; u64 b = g.reg == RZ ? 0 : (u64)w.R[g.reg][l]; if (g.wide && g.reg != RZ) b |= (u64)w.R[g.reg + 1][l] << 32; if (g.ureg != URZ) b += (u64)w.UR[g.ureg] | (u64)w.UR[g.ureg + 1] << 32; b += g.offset; addr[l] = a; from[l] = b; if (a + x.width > shared.size() || a % x.width) die("shared address " + std::to_string(a) + " of " + std::to_string(shared.size()) + ": " + x.full); if (zero && pval(w, o[2], l)) memset(&shared[a], 0, x.width); else memcpy(&shared[a], gptr(b, x.width, x), x.width); }
          if (ex) { int n = sectors_of(from, ex, x.width, true), f = wavefronts_of(addr, ex, x.width); gld_sec += n; gld_req++; x.sectors += n; sst_wf += f; sst_req++; x.wavefronts += f; } break; }
        // A branch if a warp diverges is taken where not all lanes of its mask are here.
        case BRA: { u32 take = ex; if (x.has("DIV") && (o[0].inv ? ~raw(w, o[0], 0) : raw(w, o[0], 0)) == act) take = 0; for (auto &q : o) if (q.kind == PRED || q.kind == UPRED) { u32 m = 0; for (int l = 0; l < 32; l++) if (pval(w, q, l)) m |= 1u << l; take &= m; } for (int l = 0; l < 32; l++) if (act >> l & 1) w.pc[l] = (take >> l & 1) ? x.target : pc + 1; advance = false; break; }
        case CALL: for (int l = 0; l < 32; l++) if (act >> l & 1) w.pc[l] = (ex >> l & 1) ? x.target : pc + 1; advance = false; break;
        case RET: for (int l = 0; l < 32; l++) if (act >> l & 1) { if (ex >> l & 1) { auto f = p.at.find((int)w.R[o[0].reg][l]); if (f == p.at.end()) die("bad return"); w.pc[l] = f->second; } else w.pc[l] = pc + 1; } advance = false; break;
        case EXIT: w.exited |= ex; for (int l = 0; l < 32; l++) if (act >> l & 1) w.pc[l] = pc + 1; advance = false; for (int b = 0; b < 16; b++) w.bar[b] &= ~ex; break;
        case BSSY: w.bar[o[0].reg] = act; break;
        case BREAK: w.bar[o[0].reg] &= ~ex; break;
        case BSYNC: { int b = o[0].reg; u32 need = w.bar[b] & ~w.exited; w.wait[b] |= act & ex;  if ((need & ~w.wait[b]) == 0) { u32 rel = w.wait[b]; w.wait[b] = 0; w.blocked &= ~rel; for (int l = 0; l < 32; l++) if (rel >> l & 1) w.pc[l] = pc + 1; } else { w.blocked |= act & ex; } for (int l = 0; l < 32; l++) if ((act & ~ex) >> l & 1) w.pc[l] = pc + 1; continue; }
        case BAR: bars++;  for (int l = 0; l < 32; l++) if (act >> l & 1) w.pc[l] = pc + 1; w.atbar = true; return;
        default: die("not implemented: " + x.full);
      }
      
      if (advance) for (int l = 0; l < 32; l++) if (act >> l & 1) w.pc[l] = pc + 1;
    }
  }
};

int main(int argc, char **argv) {
  if (argc < 2) die("usage: sasstrace JOB --stats FILE");
  string job = argv[1], stats;
  for (int i = 2; i + 1 < argc; i += 2) { string a = argv[i]; if (a == "--stats") stats = argv[i + 1]; else die("unknown option " + a); }
  std::ifstream js(job); if (!js) die("cannot read " + job);
  string sass, kernel, line; int smem = 0;
  while (std::getline(js, line)) {
    std::stringstream ss(line); vector<string> t; string q; while (ss >> q) t.push_back(q); if (t.empty()) continue;
    if (t[0] == "sass") sass = t[1];
    else if (t[0] == "kernel") kernel = t[1];
    else if (t[0] == "grid") for (int i = 0; i < 3; i++) gdim[i] = atoi(t[1 + i].c_str());
    else if (t[0] == "block") for (int i = 0; i < 3; i++) bdim[i] = atoi(t[1 + i].c_str());
    else if (t[0] == "smem") smem = atoi(t[1].c_str());
    else if (t[0] == "param") { for (size_t i = 0; t.size() > 1 && i + 1 < t[1].size(); i += 2) cbank[0x160 + i / 2] = (unsigned char)strtoul(t[1].substr(i, 2).c_str(), 0, 16); }
    else if (t[0] == "memory") { Buffer b; b.base = strtoull(t[1].c_str(), 0, 10); u64 n = strtoull(t[2].c_str(), 0, 10); b.data.resize(n); std::ifstream f(t[3], std::ios::binary); f.read((char *)b.data.data(), n); if ((u64)f.gcount() != n) die("short file " + t[3]); b.out = t[4]; buffers.push_back(std::move(b)); }
    else die("unknown item " + t[0]); }
  memcpy(cbank, bdim, 12); memcpy(cbank + 12, gdim, 12); u32 stack = LOCAL_BYTES; memcpy(cbank + 0x28, &stack, 4); u64 zero = 0; memcpy(cbank + 0x118, &zero, 8);
  Program p = load(sass, kernel); shared.assign(smem, 0); banks = constant_banks(); banks[4] = vector<unsigned char>(256, 0);
  bool uses_local = false; for (auto &x : p.code) if (x.code == LDL || x.code == STL) uses_local = true;
  Sim s(p); int threads = bdim[0] * bdim[1] * bdim[2], warps = (threads + 31) / 32; vector<Warp> ws(warps); long done = 0;
  for (u32 z = 0; z < gdim[2]; z++) for (u32 y = 0; y < gdim[1]; y++) for (u32 xx = 0; xx < gdim[0]; xx++) {
    done++; s.held.clear();
    s.ctaid[0] = xx; s.ctaid[1] = y; s.ctaid[2] = z; std::fill(shared.begin(), shared.end(), 0xCD);
    for (int i = 0; i < warps; i++) { Warp &w = ws[i]; memset(w.P, 0, sizeof w.P); memset(w.UR, 0, sizeof w.UR); memset(w.R, 0, sizeof w.R); w.P[7] = ~0u; w.UP = 0; w.exited = w.blocked = 0; int rest = threads - i * 32; if (rest < 32) w.exited = ~0u << rest; memset(w.pc, 0, sizeof w.pc); memset(w.bar, 0, sizeof w.bar); memset(w.wait, 0, sizeof w.wait); w.atbar = false; w.local.assign(uses_local ? 32 * LOCAL_BYTES : 0, 0xCD); }
    for (;;) { bool any = false; for (int i = 0; i < warps; i++) { if (ws[i].exited == ~0u) continue; ws[i].atbar = false; s.run(ws[i], i); if (ws[i].exited != ~0u) any = true; } if (!any) break; } }
  for (auto &b : buffers) if (b.changed) { std::ofstream f(b.out, std::ios::binary); f.write((char *)b.data.data(), b.data.size()); }
  std::map<string, u64> cls; for (auto &x : p.code) { string c; switch (x.code) { case FADD: case FMUL: case FFMA: case FMNMX: case FSEL: case DADD: case DMUL: case DFMA: c = "fp"; break; case LDG: c = "ldg"; break; case STG: case RED: c = "stg"; break; case LDS: c = "lds"; break; case STS: c = "sts"; break; case BAR: c = "bar"; break; case BRA: case BSSY: case BSYNC: case CALL: case RET: case EXIT: case BREAK: c = "control"; break; case MUFU: c = "mufu"; break; case I2F: case F2I: case F2F: case FRND: c = "convert"; break; case LDGSTS: c = "ldgsts"; break; case LDL: case STL: c = "local"; break; case SHFL: case VOTE: c = "shuffle"; break; case ISETP: case PLOP3: case FSETP: case DSETP: c = "compare"; break; case NOP: c = "nop"; break; case MOV: case S2R: case CS2R: case LDC: c = "move"; break; default: c = x.has("MOV") ? "move" : x.op == "HFMA2" ? "move" : "int"; } cls[c] += x.count; }
  FILE *sf = stats.empty() ? stdout : fopen(stats.c_str(), "w");
  fprintf(sf, "{\"kernel\": \"%s\", \"blocks\": %ld, \"threads\": %d, \"warp_instructions\": %llu, \"lane_instructions\": %llu, \"static\": %d,\n \"global_load_requests\": %llu, \"global_load_sectors\": %llu, \"global_load_new_sectors\": %llu, \"global_store_requests\": %llu, \"global_store_sectors\": %llu,\n \"shared_load_requests\": %llu, \"shared_load_wavefronts\": %llu, \"shared_store_requests\": %llu, \"shared_store_wavefronts\": %llu, \"barriers\": %llu, \"local_requests\": %llu,\n \"mix\": {", kernel.c_str(), done, threads, (unsigned long long)s.total, (unsigned long long)s.laneops, (int)p.code.size(), (unsigned long long)s.gld_req, (unsigned long long)s.gld_sec, (unsigned long long)s.gld_new, (unsigned long long)s.gst_req, (unsigned long long)s.gst_sec, (unsigned long long)s.sld_req, (unsigned long long)s.sld_wf, (unsigned long long)s.sst_req, (unsigned long long)s.sst_wf, (unsigned long long)s.bars, (unsigned long long)s.local_req);
  bool first = true; for (auto &c : cls) { fprintf(sf, "%s\"%s\": %llu", first ? "" : ", ", c.first.c_str(), (unsigned long long)c.second); first = false; } fprintf(sf, "}}\n"); if (sf != stdout) fclose(sf);
  if (getenv("HOT")) for (auto &x : p.code) if (x.count) printf("%04x %10llu %5.1f %6.2f  %s%s%d %s\n", x.pc, (unsigned long long)x.count, 1.0 * x.lanes / x.count, x.sectors ? 1.0 * x.sectors / x.count : x.wavefronts ? 1.0 * x.wavefronts / x.count : 0.0, x.pneg ? "@!" : "@", x.upred ? "UP" : "P", x.pred, x.full.c_str());
}
