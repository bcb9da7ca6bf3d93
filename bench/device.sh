#!/bin/sh
# What the papers' pages need a GPU for, in one run of a few minutes: times as JSON in a folder (build/device).
#   sh bench/device.sh [FOLDER]     needs one NVIDIA GPU, nvcc, and `metafork` on the PATH; PYTHON=... names another Python
set -u
cd "$(dirname "$0")/.."
folder=${1:-build/device}
python=${PYTHON:-python3}
mkdir -p "$folder"
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader > "$folder/gpu.txt"

# Each step has its share of eight minutes; one that fails or takes longer leaves its log, and the next one begins.
step() {
    name=$1 seconds=$2
    shift 2
    echo "$name"
    timeout "$seconds" "$@" > "$folder/$name.log" 2>&1 || echo "$name: status $?, see $folder/$name.log"
}

# Tables 1 to 3 of the comprehensive-optimization paper, at its sizes.
step paper 150 "$python" bench/paper.py --device --write
# PTXASW's Figures 2 and 3, and Swizzle Inventor's 10 to 13.
step shuffle 60 "$python" bench/shuffle.py --device
step moves 60 "$python" bench/moves.py --device
# Our kernels beside an expert's.
step times 120 "$python" bench/times.py matmul transp copy --write
# The leaves of examples on the device, with their results.
step verify 90 metafork verify examples/smooth.mf examples/reverse.mf examples/jacobi1d.mf --device
for name in paper_device times shuffle_device moves_device; do
    if [ -f "bench/results/$name.json" ]; then cp "bench/results/$name.json" "$folder/"; fi
done
