# SPDX-License-Identifier: BSD-2-Clause
# Figures of run.sh: the error over the delay of the loop, and the voltage around the
# switch. Variables: out, name, step, middle.
set terminal svg size 720,480
set grid
set key left top

set output out . '/errors.svg'
set title 'Error of the interface voltage, coupled over ' . name
set xlabel 'delay of the loop in us'
set ylabel 'error in %'
set logscale xy
plot out . '/errors.dat' using 1:2 with points pt 7 title 'measured, switch open', \
     '' using 1:3 with lines title 'theory, switch open', \
     '' using 1:4 with points pt 5 title 'measured, switch closed', \
     '' using 1:5 with lines title 'theory, switch closed'
unset logscale

set output out . '/switching.svg'
set title 'The switch closes; step ' . step . ' us'
set xlabel 'time in s'
set ylabel 'voltage in V'
set xrange [middle - 0.01 : middle + 0.03]
plot out . '/' . name . '-' . step . '.dat' using 1:3 with lines title 'undivided', \
     '' using 1:2 with steps title 'coupled'
