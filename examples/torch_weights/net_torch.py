# The twin of main.cpp in PyTorch, which also writes the weights main.cpp reads:
#   python3 net_torch.py weights.npz
import sys

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3, padding=1)
        self.norm = nn.LayerNorm(64)
        self.out = nn.Linear(64, 3)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv(x)), 2)
        x = self.norm(x.flatten(1))
        return F.softmax(self.out(x), dim=1)


def main():
    torch.manual_seed(0)
    net = Net().eval()
    for parameter in net.norm.parameters():
        nn.init.normal_(parameter)
    x = torch.randn(5, 1, 8, 8)
    with torch.no_grad():
        y = net(x)
    print("classes", y.argmax(1))
    print("probabilities", y)
    weights = {name: value.numpy() for name, value in net.state_dict().items()}
    if len(sys.argv) > 1:
        np.savez(sys.argv[1], x=x.numpy(), y=y.numpy(), **weights)


if __name__ == "__main__":
    main()
